/* SPDX-License-Identifier: BSD-2-Clause */
#include "mutate.h"

#include <string.h>

#define KINDS 8

uint64_t mutate_seed = 1;

uint32_t mutate_below(uint32_t limit)
{
	mutate_seed ^= mutate_seed << 13;
	mutate_seed ^= mutate_seed >> 7;
	mutate_seed ^= mutate_seed << 17;
	return (mutate_seed >> 20) % limit;
}

/* Values that have a meaning somewhere, or are at an edge. */
static const uint8_t edges[] = {0, 1, 4, 5, 6, 8, 17, 20, 43, 44, 58, 60, 127, 128, 254, 255};

/* Headers are short: most changes go there. */
static int position(int length)
{
	int limit = mutate_below(4) ? 100 : length;

	return MUTATE_SHORTEST - 2 + mutate_below(limit < length - 12 ? limit : length - 12);
}

int mutate_frame(uint8_t *bytes, int length)
{
	int changes = 1 + mutate_below(4);

	for (int i = 0; i < changes; i++) {
		int at = position(length);

		switch (mutate_below(KINDS)) {
		case 0:
			bytes[at] ^= 1 << mutate_below(8);
			break;
		case 1:
			bytes[at] = edges[mutate_below(sizeof(edges))];
			break;
		case 2:
			bytes[at] += mutate_below(2) ? 1 : -1;
			break;
		case 3: /* a part twice */
			if (at + 16 < length)
				memmove(bytes + at + 8, bytes + at, 8);
			break;
		case 4: /* a part missing */
			if (at + 16 < length)
				memmove(bytes + at, bytes + at + 8, length - at - 8);
			break;
		case 5:
			length -= mutate_below(length - MUTATE_SHORTEST + 1);
			break;
		case 6: /* more behind */
			for (int more = mutate_below(64); more && length < MUTATE_LONGEST; more--)
				bytes[length++] = mutate_below(256);
			break;
		default:
			bytes[at] = mutate_below(256);
			break;
		}
		if (length <= MUTATE_SHORTEST)
			return MUTATE_SHORTEST;
	}
	return length;
}
