"""The commands of `w2v`: each turns its options into arguments of library functions and returns their result."""
