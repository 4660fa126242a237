/* Decode and encode UTF-8 characters. Padding follows every text, so an incomplete character at the end is recognised
   without checking the length. */
#pragma once
#include "_text.h"

/* Convert the ASCII capitals among eight bytes to lower case. */
static inline uint64_t lower_ascii(uint64_t bytes)
{
    uint64_t low = bytes & EACH_BYTE(0x7f);
    uint64_t capital = (low + EACH_BYTE(0x80 - 'A')) & ~(low + EACH_BYTE(0x80 - 'Z' - 1)) & ~bytes & EACH_BYTE(0x80);
    return bytes | capital >> 2;
}

/* Return the number of ASCII bytes before the first non-ASCII byte; 8 if all are ASCII. */
static inline int ascii_before(uint64_t bytes)
{
    uint64_t others = bytes & EACH_BYTE(0x80);
    return others ? lowest_bit(others) >> 3 : 8;
}

static inline void store_bytes(uint8_t *text, uint64_t bytes) { memcpy(text, &bytes, sizeof bytes); }

static inline int continues(uint8_t byte) { return (byte & 0xc0) == 0x80; }

/* Store the code point of the first character of a text. Return its number of bytes, or 0 if it is not UTF-8. */
static inline int decode(const uint8_t *text, uint32_t *point)
{
    uint32_t first = text[0];
    if (first < 0x80)
        return *point = first, 1;
    if (first < 0xc2 || !continues(text[1]))
        return 0;
    if (first < 0xe0)
        return *point = (first & 0x1f) << 6 | (text[1] & 0x3f), 2;
    if (!continues(text[2]))
        return 0;
    if (first < 0xf0) {
        *point = (first & 0x0f) << 12 | (text[1] & 0x3f) << 6 | (text[2] & 0x3f);
        return *point < 0x800 || (*point >= 0xd800 && *point < 0xe000) ? 0 : 3;
    }
    if (first > 0xf4 || !continues(text[3]))
        return 0;
    *point = (first & 0x07) << 18 | (text[1] & 0x3f) << 12 | (text[2] & 0x3f) << 6 | (text[3] & 0x3f);
    return *point < 0x10000 || *point > 0x10ffff ? 0 : 4;
}

/* Write a character. Return its number of bytes. */
static inline int encode(uint8_t *text, uint32_t point)
{
    if (point < 0x80)
        return text[0] = point, 1;
    int length = point < 0x800 ? 2 : point < 0x10000 ? 3 : 4;
    for (int i = length - 1; i > 0; i--, point >>= 6)
        text[i] = 0x80 | (point & 0x3f);
    text[0] = (0xf00 >> length & 0xff) | point;
    return length;
}
