#!/bin/sh
# Unpacks a Python of another Debian without installing it:
#     sh tests/wheels/debian.sh FOLDER amd64|arm64 trixie python3.13
# prints the path of a script that runs this Python, with its own loader for amd64 and by qemu-user-static for arm64.
# Run it as root; it needs the packages debootstrap and qemu-user-static. Debian's packages come from $DEBIAN_MIRROR or,
# if that is not set, from the mirror that apt uses on this machine.
set -e
folder=$(realpath -m "$1") name=$4
mirror=${DEBIAN_MIRROR:-$(apt-get indextargets --format '$(LABEL) $(REPO_URI)' 2>/dev/null |
    awk '$1 == "Debian" || $NF ~ "/debian/$" { print $NF; exit }')}
if [ -z "$mirror" ]; then
    echo "no mirror of Debian: apt on this machine names none; set DEBIAN_MIRROR=URL" >&2
    exit 1
fi
debootstrap --foreign --arch="$2" --variant=minbase --include="$4,$4-venv" "$3" "$folder" \
    "$mirror" /usr/share/debootstrap/scripts/sid >"$folder.log"
for package in "$folder"/var/cache/apt/archives/*.deb; do dpkg-deb --extract "$package" "$folder"; done
case $2 in
amd64) libraries=$folder/usr/lib/x86_64-linux-gnu
       start="$libraries/ld-linux-x86-64.so.2 --library-path $libraries --argv0" ;;
arm64) start="qemu-aarch64-static -cpu cortex-a72 -L $folder -0" ;;
esac
printf '#!/bin/sh\nexec %s "$0" %s "$@"\n' "$start" "$folder/usr/bin/$name" >"$folder/usr/bin/w2v-$name"
chmod +x "$folder/usr/bin/w2v-$name"
echo "$folder/usr/bin/w2v-$name"
