/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The conversation id of a datagram, at a fixed offset of its payload.
 *
 * Owns: where the id is, what is an id and what is not (semantics.md section 2), the bytes to hash where there is none. May not know:
 * hashes, rings, replicas.
 *
 * In the field: NULs behind the id are padding, blanks (space, tab) around it are trimmed; then 1 to 128 characters out of letters,
 * digits, '.', '_', ':', '-'. Nothing but padding and blanks: there is no id.
 */
#ifndef WARMPATH_BPF_ID_H
#define WARMPATH_BPF_ID_H

#include <linux/errno.h>

#include "packet.h"

#define ID_BATCH_MAX   128 /* datagrams in one batch: what the kernel allows (UDP_MAX_SEGMENTS) */
#define ID_BYTES(byte) (0x0101010101010101ULL * (byte)) /* eight times the same byte */
#define ID_HIGH	       ID_BYTES(0x80)

/* 0x80 in each byte of `word` that is >= low, 0 elsewhere. No byte may be above 0x7f, low is 1 to 0x80. */
static __always_inline __u64 id_bytes_from(__u64 word, __u8 low)
{
	return (word + ID_BYTES(0x80 - low)) & ID_HIGH;
}

/* 0x80 in each byte that is between low and high (both included). */
static __always_inline __u64 id_bytes_between(__u64 word, __u8 low, __u8 high)
{
	return id_bytes_from(word, low) & ~id_bytes_from(word, high + 1);
}

/* 0x80 in each byte that may be in an id, 0 elsewhere. Eight at a time and without branches: it is done for every packet. */
static __always_inline __u64 id_bytes_allowed(__u64 word)
{
	__u64 ascii = word & ~ID_HIGH;
	__u64 letters =
		ascii |
		ID_BYTES(0x20); /* of either case, as small ones; nothing else comes into a..z */
	__u64 allowed;

	allowed = id_bytes_between(letters, 'a', 'z');
	allowed |= id_bytes_between(ascii, '0', ':'); /* ':' comes behind '9' */
	allowed |= id_bytes_between(ascii, '-', '.');
	allowed |= id_bytes_between(ascii, '_', '_');
	return allowed & ~word;
}

/* Fills the block with `length` (1 to 128) bytes of the packet, zeros behind them. 0 or a negative errno. */
static __always_inline int id_load(struct packet_context *context, __u32 offset, __u32 length,
				   struct id_block *id)
{
	for (int i = 0; i < ID_LENGTH_MAX / 8; i++)
		id->word[i] = 0;
	if (!warmpath_size_within(&length, ID_LENGTH_MAX))
		return -EINVAL;
	return context_load(context, offset, id, length);
}

/*
 * Are the first bytes of the block an id, with nothing but NULs behind? Returns its length, 0 if there are only NULs,
 * -EINVAL for anything else. words: how many words to look at.
 */
static __always_inline int id_check(const struct id_block *id, __u32 words)
{
	__u64 wrong = 0, ended = 0;
	__u32 length = 0;

	for (__u32 i = 0; i < ID_LENGTH_MAX / 8; i++) {
		__u64 word, allowed, full;

		if (i >= words)
			break;
		word = id->word[i];
		allowed = id_bytes_allowed(word);
		full = (allowed >> 7) * 0xff; /* 0xff for each allowed byte */
		wrong |= word & ~full;	      /* neither allowed nor NUL */
		wrong |= full &
			 (full +
			  1); /* a NUL before an allowed byte (the first byte is the lowest) */
		wrong |= full & ended;
		ended |= ~full;
		ended = ended ? ~0ULL : 0;
		length += ((allowed >> 7) * ID_BYTES(1)) >> 56;
	}
	return wrong ? -EINVAL : (int)length;
}

/* 0x80 in each byte that is not `byte`. */
static __always_inline __u64 id_bytes_other_than(__u64 word, __u8 byte)
{
	__u64 difference = word ^ ID_BYTES(byte);

	return (((difference & ~ID_HIGH) + ~ID_HIGH) | difference) & ID_HIGH;
}

/* One bit for each byte of 0x80, the first byte's bit lowest. */
static __always_inline __u64 id_bits(__u64 bytes)
{
	return ((bytes >> 7) * 0x0102040810204080ULL) >> 56;
}

static __always_inline __u32 id_bits_set(__u64 bits)
{
	bits -= (bits >> 1) & ID_BYTES(0x55);
	bits = (bits & ID_BYTES(0x33)) + ((bits >> 2) & ID_BYTES(0x33));
	return (((bits + (bits >> 4)) & ID_BYTES(0x0f)) * ID_BYTES(1)) >> 56;
}

/* How many bits are below the lowest one set; 64 if none is. */
static __always_inline __u32 id_bits_below_first(__u64 bits)
{
	return id_bits_set((bits & -bits) - 1);
}

/* The number of the highest bit set, from 1; 0 if none is. */
static __always_inline __u32 id_bits_to_last(__u64 bits)
{
	for (int shift = 1; shift < 64; shift *= 2)
		bits |= bits >> shift;
	return id_bits_set(bits);
}

/*
 * Where the id begins and ends in a field that has blanks around it; *length is 0 if there is none. -EINVAL: NULs inside.
 * One bit for each of the 128 bytes, in two halves: a loop over the bytes would have more paths than the verifier walks.
 */
static __always_inline int id_trim(const struct id_block *id, __u32 *start, __u32 *length)
{
	__u64 text_low = 0,
	      text_high = 0; /* neither NUL nor blank; the low half is of the first 64 bytes */
	__u64 filled_low = 0, filled_high = 0; /* not NUL */
	__u32 first, behind;

#pragma clang loop unroll(disable)
	for (int i = 0; i < ID_LENGTH_MAX / 8; i++) {
		__u64 word = id->word[i];
		__u64 filled = id_bytes_other_than(word, 0);
		__u64 text =
			filled & id_bytes_other_than(word, ' ') & id_bytes_other_than(word, '\t');

		/* shift the next 8 bits in from above */
		filled_low = filled_low >> 8 | filled_high << 56;
		filled_high = filled_high >> 8 | id_bits(filled) << 56;
		text_low = text_low >> 8 | text_high << 56;
		text_high = text_high >> 8 | id_bits(text) << 56;
	}
	if ((filled_low & (filled_low + 1)) || (filled_high & (filled_high + 1)) ||
	    (filled_high && ~filled_low))
		return -EINVAL;
	first = text_low ? id_bits_below_first(text_low) : 64 + id_bits_below_first(text_high);
	behind = text_high ? 64 + id_bits_to_last(text_high) : id_bits_to_last(text_low);
	*start = first;
	*length = behind > first ? behind - first : 0;
	return 0;
}

/*
 * Reads the id at `offset` (of the frame), in a field of `size` bytes (1 to 128) that lies wholly in the packet, into scratch->id.
 * Returns its length; 0: there is none; -EINVAL: what is there is not an id; another negative errno: not readable.
 * A global function: verified once.
 */
__noinline int id_read(struct packet_context *context, __u32 offset, __u32 size)
{
	struct scratch *scratch = scratch_get();
	__u32 start, length;
	int result;

	if (!context || !scratch)
		return -ENOENT;
	result = id_load(context, offset, size, &scratch->id);
	if (result)
		return result;
	result = id_check(&scratch->id, (size + 7) / 8);
	if (result >= 0)
		return result;

	/* rare: blanks, or not an id */
	result = id_trim(&scratch->id, &start, &length);
	if (result || length == 0)
		return result;
	result = id_load(context, offset + start, length, &scratch->id);
	if (result)
		return result;
	return id_check(&scratch->id, (length + 7) / 8);
}

struct id_batch {
	struct packet_context *context;
	struct scratch *scratch;
	__u32 offset;	  /* of the id field in the first datagram */
	__u32 size;	  /* of the field */
	__u32 segment;	  /* payload bytes of a datagram */
	__u32 end;	  /* of the last one's payload */
	__u64 difference; /* not 0: somewhere */
};

/* Compares one datagram's id field with the first one's, which is in scratch->id. Returns 1 at the end. */
static long id_compare_next(__u32 index, struct id_batch *batch)
{
	__u32 offset = batch->offset + (index + 1) * batch->segment;
	struct id_block *other = &batch->scratch->other_id;

	if (offset + batch->size > batch->end)
		return 1;
	if (id_load(batch->context, offset, batch->size, other))
		return 1;
	for (int i = 0; i < ID_LENGTH_MAX / 8; i++)
		batch->difference |= batch->scratch->id.word[i] ^ other->word[i];
	return batch->difference != 0;
}

/*
 * Do all datagrams of a batch that the device is to cut (UDP_SEGMENT) have the same id field as the first? A program cannot cut it, and so
 * sends all of it one way. offset, size: of the field in the first datagram; segment: payload bytes of one. Overwrites scratch->id.
 * A global function: verified once.
 */
__noinline int id_batch_is_mixed(struct packet_context *context, __u32 offset, __u32 size,
				 __u32 segment)
{
	struct id_batch batch = {
		.context = context,
		.scratch = scratch_get(),
		.offset = offset,
		.size = size,
		.segment = segment,
	};

	if (!context || !batch.scratch || id_load(context, offset, size, &batch.scratch->id))
		return 0;
	batch.end = batch.scratch->packet.payload_end;
	bpf_loop(ID_BATCH_MAX, id_compare_next, &batch, 0);
	return batch.difference != 0;
}

/*
 * What stands for an id where there is none: up to 128 bytes behind the id field, the same in all turns of a conversation that sends its
 * history again; or else the client's own address and port. Returns the length of scratch->id.
 */
static __always_inline int id_substitute(struct packet_context *context, struct scratch *scratch,
					 __u32 offset)
{
	const struct packet *packet = &scratch->packet;
	__u32 length = packet->payload_end > offset ? packet->payload_end - offset : 0;

	if (length > ID_LENGTH_MAX)
		length = ID_LENGTH_MAX;
	if (length)
		return id_load(context, offset, length, &scratch->id) ? -EFAULT : (int)length;
	for (int i = 3; i < ID_LENGTH_MAX / 8; i++)
		scratch->id.word[i] = 0;
	__builtin_memcpy(&scratch->id.word[0], &packet->source, sizeof(packet->source));
	scratch->id.word[2] = packet->source_port;
	return sizeof(packet->source) + sizeof(packet->source_port);
}

#endif /* WARMPATH_BPF_ID_H */
