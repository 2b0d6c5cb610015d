/* SPDX-License-Identifier: BSD-2-Clause */
/* What router and replica agree on for a handoff: SipHash, TCP options, cookie, mark. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

#include <warmpath/cookie.h>
#include <warmpath/mark.h>
#include <warmpath/siphash.h>
#include <warmpath/tcp_options.h>

#include "siphash_vectors.h"

static __u64 random_state = 0x9e3779b97f4a7c15ULL;

/* xorshift64*: the same numbers in every run. */
static __u64 random_number(void)
{
	random_state ^= random_state >> 12;
	random_state ^= random_state << 25;
	random_state ^= random_state >> 27;
	return random_state * 0x2545f4914f6cdd1dULL;
}

/* --- SipHash ---------------------------------------------------------------------------------------------- */

static __u64 siphash_bytes(const struct siphash_key *key, const __u8 *bytes, __u32 length)
{
	struct siphash state = siphash_start(key);
	__u64 word = 0;
	__u32 i;

	for (i = 0; i + 8 <= length; i += 8) {
		memcpy(&word, bytes + i, 8);
		siphash_word(&state, le64toh(word));
	}
	word = 0;
	memcpy(&word, bytes + i, length - i);
	return siphash_end(state, le64toh(word), length);
}

static void siphash_gives_the_published_vectors(void **unused)
{
	struct siphash_key key = {{0x0706050403020100ULL, 0x0f0e0d0c0b0a0908ULL}};
	__u8 message[64];

	(void)unused;
	for (int i = 0; i < 64; i++)
		message[i] = i;
	for (int length = 0; length < 64; length++)
		assert_int_equal(siphash_bytes(&key, message, length), siphash_vectors[length]);
}

/* --- options ---------------------------------------------------------------------------------------------- */

struct options_case {
	const char *name;
	const char *bytes;
	int length;
	int result;
	struct tcp_options found;
};

#define BYTES(text) text, sizeof(text) - 1
#define NO_SCALE    .scale = TCP_SCALE_NONE

static const struct options_case options_cases[] = {
	{"none", BYTES(""), 0, {NO_SCALE}},
	{"as Linux sends them",
	 BYTES("\2\4\x05\xb4\4\2\x08\x0a\x11\x22\x33\x44\0\0\0\0\1\3\3\7"),
	 0,
	 {.segment_size = 1460,
	  .sack_permitted = 1,
	  .timestamps = 1,
	  .timestamp_value = 0x11223344,
	  .scale = 7}},
	{"as macOS sends them",
	 BYTES("\2\4\x05\xb4\1\3\3\6\1\1\x08\x0a\xa1\xb2\xc3\xd4\0\0\0\0\4\2\0\0"),
	 0,
	 {.segment_size = 1460,
	  .sack_permitted = 1,
	  .timestamps = 1,
	  .timestamp_value = 0xa1b2c3d4,
	  .scale = 6}},
	{"as Windows sends them",
	 BYTES("\2\4\x05\xb4\1\3\3\x08\1\1\4\2"),
	 0,
	 {.segment_size = 1460, .sack_permitted = 1, .scale = 8}},
	{"size only", BYTES("\2\4\x02\x18"), 0, {.segment_size = 536, NO_SCALE}},
	{"timestamps of a data segment",
	 BYTES("\1\1\x08\x0a\x01\x02\x03\x04\xf5\xf6\xf7\xf8"),
	 0,
	 {.timestamps = 1, .timestamp_value = 0x01020304, .timestamp_echo = 0xf5f6f7f8, NO_SCALE}},
	{"timestamps unaligned, behind a SACK block",
	 BYTES("\1\5\x0a\0\0\0\1\0\0\0\2\x08\x0a\x01\x02\x03\x04\x05\x06\x07\x08"),
	 0,
	 {.timestamps = 1, .timestamp_value = 0x01020304, .timestamp_echo = 0x05060708, NO_SCALE}},
	{"scale above 14 counts as 14", BYTES("\3\3\xff"), 0, {.scale = 14}},
	{"scale 0 is a scale", BYTES("\3\3\0"), 0, {.scale = 0}},
	{"unknown options are skipped",
	 BYTES("\x22\x0c\1\2\3\4\5\6\7\x08\x09\x0a\x1e\4\0\0\2\4\x04\xd2"),
	 0,
	 {.segment_size = 1234, NO_SCALE}},
	{"nothing is read behind the end", BYTES("\0\2\4\x05\xb4"), 0, {NO_SCALE}},
	{"of two sizes the last counts",
	 BYTES("\2\4\x05\xb4\2\4\x04\xd2"),
	 0,
	 {.segment_size = 1234, NO_SCALE}},
	{"a size of another length is none", BYTES("\2\5\x05\xb4\1"), 0, {NO_SCALE}},
	{"timestamps of another length are none", BYTES("\x08\3\1"), 0, {NO_SCALE}},
	{"all forty bytes padding",
	 BYTES("\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\4\2\1\1"),
	 0,
	 {.sack_permitted = 1, NO_SCALE}},
	{"length 0", BYTES("\2\0\x05\xb4"), -EINVAL, {0}},
	{"length 1", BYTES("\x22\1\1\1"), -EINVAL, {0}},
	{"longer than the options", BYTES("\1\1\x08\x0a\1\2\3\4"), -EINVAL, {0}},
	{"length beyond the end", BYTES("\1\1\1\2"), -EINVAL, {0}},
};

static void options_are_found_in_any_order(void **unused)
{
	(void)unused;
	for (size_t i = 0; i < sizeof(options_cases) / sizeof(options_cases[0]); i++) {
		const struct options_case *test = &options_cases[i];
		struct tcp_options_walk walk;
		int result;

		memset(&walk, 0xaa, sizeof(walk));
		memcpy(walk.bytes, test->bytes, test->length);
		result = tcp_options_read(&walk, test->length);
		if (result != test->result ||
		    (!result && memcmp(&walk.found, &test->found, sizeof(walk.found))))
			fail_msg("%s: %d", test->name, result);
	}
}

static void random_options_stay_in_bounds(void **unused)
{
	struct tcp_options_walk walk;
	int good = 0;

	(void)unused;
	for (int round = 0; round < 200000; round++) {
		for (size_t i = 0; i < sizeof(walk.bytes); i++)
			walk.bytes[i] = random_number() >> (random_number() & 63);
		good += !tcp_options_read(&walk, random_number() % (TCP_OPTIONS_MAX + 1));
	}
	assert_in_range(good, 1, 199999);
}

static void packed_byte_keeps_what_was_negotiated(void **unused)
{
	(void)unused;
	for (int ipv6 = 0; ipv6 < 2; ipv6++) {
		for (__u32 size = 0; size < 65536; size += 7) {
			struct tcp_options options = {
				.segment_size = size,
				.scale = random_number() & 15,
				.sack_permitted = random_number() & 1,
			};
			bool ecn = random_number() & 1;
			__u8 packed = tcp_options_pack(&options, ecn, ipv6);
			__u16 least = ipv6 ? 1220 : 536;
			__u16 kept = tcp_packed_segment_size(packed, ipv6);

			assert_int_equal(tcp_packed_scale(packed), options.scale);
			assert_int_equal(!!(packed & TCP_PACKED_SACK), options.sack_permitted);
			assert_int_equal(!!(packed & TCP_PACKED_ECN), ecn);
			/* never more than the client can take, if it can take what every client must */
			assert_true(kept <= size || kept == least);
		}
		assert_int_equal(
			tcp_packed_segment_size(
				tcp_options_pack(
					&(struct tcp_options){.segment_size = ipv6 ? 1440 : 1460},
					false, ipv6),
				ipv6),
			ipv6 ? 1440 : 1460);
	}
}

/* --- cookie ----------------------------------------------------------------------------------------------- */

static const struct siphash_key key_a = {{0x1111111122222222ULL, 0x3333333344444444ULL}};
static const struct siphash_key key_b = {{0x1111111122222222ULL, 0x3333333344444445ULL}};

static struct cookie_subject random_subject(void)
{
	struct cookie_subject subject = {0};
	__u8 *bytes = (__u8 *)&subject;

	for (size_t i = 0; i < sizeof(subject); i++)
		bytes[i] = random_number() >> 24;
	return subject;
}

static void cookie_gives_back_the_options(void **unused)
{
	(void)unused;
	for (int round = 0; round < 20000; round++) {
		struct cookie_subject subject = random_subject();
		__u32 slot = random_number();
		__u8 options = random_number(), found = ~options;
		__u32 cookie = cookie_make(&key_a, &subject, slot, options);

		assert_int_equal(cookie_check(&key_a, &subject, cookie, slot, &found), COOKIE_GOOD);
		assert_int_equal(found, options);
	}
}

static void cookie_lives_two_slots(void **unused)
{
	(void)unused;
	for (int round = 0; round < 2000; round++) {
		struct cookie_subject subject = random_subject();
		__u32 slot = round < 4 ? (__u32)round - 2 : random_number(); /* also around 2^32 */
		__u8 options = random_number(), found;
		__u32 cookie = cookie_make(&key_a, &subject, slot, options);

		assert_int_equal(cookie_check(&key_a, &subject, cookie, slot - 1, &found),
				 COOKIE_GOOD);
		assert_int_equal(cookie_check(&key_a, &subject, cookie, slot + 1, &found),
				 COOKIE_GOOD);
		found = ~options;
		assert_int_equal(cookie_check(&key_a, &subject, cookie, slot + 2, &found),
				 COOKIE_EXPIRED);
		assert_int_equal(found, options);
	}
}

static void cookie_of_anything_else_is_bad(void **unused)
{
	int accepted = 0, tried = 0;

	(void)unused;
	for (int round = 0; round < 2000; round++) {
		struct cookie_subject subject = random_subject();
		__u32 slot = random_number();
		__u8 found;
		__u32 cookie = cookie_make(&key_a, &subject, slot, random_number());

		/* every bit of what it is about, every bit of itself, another key, older slots */
		for (size_t bit = 0; bit < sizeof(subject) * 8; bit++) {
			struct cookie_subject other = subject;

			((__u8 *)&other)[bit / 8] ^= 1 << (bit % 8);
			accepted += cookie_check(&key_a, &other, cookie, slot, &found) != 0;
			tried++;
		}
		for (int bit = 0; bit < 32; bit++) {
			accepted += cookie_check(&key_a, &subject, cookie ^ 1u << bit, slot,
						 &found) != 0;
			tried++;
		}
		accepted += cookie_check(&key_b, &subject, cookie, slot, &found) != 0;
		for (int age = 3; age < 20; age++)
			accepted += cookie_check(&key_a, &subject, cookie, slot + age, &found) != 0;
		tried += 18;
	}
	/* 22 bits: 742,000 guesses are right 0.18 times on average; 4 or more would happen once in 30,000 */
	assert_in_range(tried, 700000, 800000);
	assert_in_range(accepted, 0, 3);
}

static void cookies_of_one_client_differ_in_all_bits(void **unused)
{
	__u32 ones[32] = {0};
	const int rounds = 4000;

	(void)unused;
	for (int round = 0; round < rounds; round++) {
		struct cookie_subject subject = random_subject();
		__u32 difference = cookie_make(&key_a, &subject, 5, 0x5e);

		subject.client_sequence += 1;
		difference ^= cookie_make(&key_a, &subject, 5, 0x5e);
		for (int bit = 0; bit < 32; bit++)
			ones[bit] += difference >> bit & 1;
	}
	/* half of them, within six standard deviations (32) */
	for (int bit = 0; bit < 32; bit++)
		assert_in_range(ones[bit], rounds / 2 - 190, rounds / 2 + 190);
}

static void cookie_slot_is_two_minutes(void **unused)
{
	(void)unused;
	assert_int_equal(cookie_slot(0), 0);
	assert_int_equal(cookie_slot(137438953471ULL), 0);
	assert_int_equal(cookie_slot(137438953472ULL), 1);
	assert_int_equal(cookie_slot(1790000000ULL * 1000000000), 13023964);
}

/* --- mark ------------------------------------------------------------------------------------------------- */

static struct mark_subject random_mark_subject(void)
{
	struct mark_subject subject = {0};
	__u8 *bytes = (__u8 *)&subject;

	for (size_t i = 0; i < sizeof(subject); i++)
		bytes[i] = random_number() >> 24;
	return subject;
}

static void mark_says_what_it_was_given(void **unused)
{
	(void)unused;
	for (int ipv6 = 0; ipv6 < 2; ipv6++) {
		for (int options = 0; options < 256; options++) {
			for (int class = 0; class < 4; class ++) {
				static const __u32 milliseconds[] = {0, 32, 128, 512};
				struct mark_subject subject = random_mark_subject();
				__u32 low;
				__u16 mark = mark_sign(&key_a, &subject, mark_start(options, class),
						       ipv6, &low);

				assert_int_equal(mark_version(mark), MARK_VERSION);
				assert_true(mark_is_start(mark));
				assert_int_equal(mark_options(mark), options);
				assert_int_equal(mark_round_trip(mark), milliseconds[class]);
				assert_true(low < (ipv6 ? 1u << 20 : 1u << 16));
				assert_true(mark_check(&key_a, &subject, mark, ipv6, low));
				/* a replica's own second pass */
				assert_true(
					mark_check(&key_a, &subject,
						   mark | MARK_VERSION_AGAIN << MARK_VERSION_SHIFT,
						   ipv6, low));
			}
		}
	}
	assert_int_equal(mark_version(MARK_FOLLOW), MARK_VERSION);
	assert_false(mark_is_start(MARK_FOLLOW));
}

static void mark_fits_one_place_only(void **unused)
{
	__u32 tried[2] = {0}, accepted[2] = {0};

	(void)unused;
	for (int ipv6 = 0; ipv6 < 2; ipv6++) {
		for (int round = 0; round < 1000; round++) {
			struct mark_subject subject = random_mark_subject();
			__u32 low;
			__u16 mark =
				mark_sign(&key_a, &subject,
					  mark_start(random_number(), random_number()), ipv6, &low);

			for (size_t bit = 0; bit < sizeof(subject) * 8; bit++) {
				struct mark_subject other = subject;

				((__u8 *)&other)[bit / 8] ^= 1 << (bit % 8);
				accepted[ipv6] += mark_check(&key_a, &other, mark, ipv6, low);
				tried[ipv6]++;
			}
			for (int bit = 0; bit < (ipv6 ? 20 : 16); bit++)
				accepted[ipv6] +=
					mark_check(&key_a, &subject, mark, ipv6, low ^ 1u << bit);
			for (int bit = 0; bit < 13; bit++)
				accepted[ipv6] +=
					mark_check(&key_a, &subject, mark ^ 1 << bit, ipv6, low);
			accepted[ipv6] += mark_check(&key_b, &subject, mark, ipv6, low);
		}
	}
	/* 19 bits in IPv4, 23 in IPv6: 382,000 guesses are right 0.7 and 0.05 times on average */
	assert_in_range(tried[0], 350000, 360000);
	assert_in_range(accepted[0], 0, 6);
	assert_in_range(accepted[1], 0, 2);
}

static void round_trips_fall_into_classes(void **unused)
{
	(void)unused;
	assert_int_equal(mark_round_trip_class(0), 0);
	assert_int_equal(mark_round_trip_class(15), 0);
	assert_int_equal(mark_round_trip_class(16), 1);
	assert_int_equal(mark_round_trip_class(63), 1);
	assert_int_equal(mark_round_trip_class(64), 2);
	assert_int_equal(mark_round_trip_class(255), 2);
	assert_int_equal(mark_round_trip_class(256), 3);
	assert_int_equal(mark_round_trip_class(~0u), 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(siphash_gives_the_published_vectors),
		cmocka_unit_test(options_are_found_in_any_order),
		cmocka_unit_test(random_options_stay_in_bounds),
		cmocka_unit_test(packed_byte_keeps_what_was_negotiated),
		cmocka_unit_test(cookie_gives_back_the_options),
		cmocka_unit_test(cookie_lives_two_slots),
		cmocka_unit_test(cookie_of_anything_else_is_bad),
		cmocka_unit_test(cookies_of_one_client_differ_in_all_bits),
		cmocka_unit_test(cookie_slot_is_two_minutes),
		cmocka_unit_test(mark_says_what_it_was_given),
		cmocka_unit_test(mark_fits_one_place_only),
		cmocka_unit_test(round_trips_fall_into_classes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
