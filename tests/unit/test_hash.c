/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * BLAKE2b and MD5 against recorded digests of another implementation (tests/data/hash-vectors.txt), and RFC 1321's own.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>
#include <warmpath/blake2b.h>
#include <warmpath/layout.h>
#include <warmpath/md5.h>

#define VECTORS	  "tests/data/hash-vectors.txt"
#define INPUT_MAX 1000

static __u8 input[INPUT_MAX], hash_key[BLAKE2B_KEY_LENGTH_MAX];

static int make_patterns(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(input); i++)
		input[i] = 7 * i + 3;
	for (size_t i = 0; i < sizeof(hash_key); i++)
		hash_key[i] = 5 * i + 1;
	return 0;
}

/* Calls check for every line of this kind; returns how many there were. */
static int for_each_vector(const char *kind, void (*check)(const char *rest))
{
	FILE *file = fopen(VECTORS, "r");
	char line[256];
	int lines = 0;

	assert_non_null(file);
	while (fgets(line, sizeof(line), file)) {
		size_t length = strlen(kind);

		if (strncmp(line, kind, length) != 0 || line[length] != ' ')
			continue;
		check(line + length + 1);
		lines++;
	}
	fclose(file);
	return lines;
}

static void check_blake2b(const char *rest)
{
	unsigned int key_length, length;
	unsigned long long digest;

	assert_int_equal(sscanf(rest, "%u %u %llx", &key_length, &length, &digest), 3);
	if (blake2b_64(input, length, hash_key, key_length) != digest)
		fail_msg("key of %u, input of %u bytes", key_length, length);
}

static void blake2b_equals_recorded_digests(void **state)
{
	(void)state;
	assert_int_equal(for_each_vector("blake2b", check_blake2b), 6 * 140);
}

static void check_blake2b_block(const char *rest)
{
	unsigned int key_length, length;
	unsigned long long digest;
	__u8 block[BLAKE2B_BLOCK_SIZE] = {0};
	__u64 start[8];

	assert_int_equal(sscanf(rest, "%u %u %llx", &key_length, &length, &digest), 3);
	if (length > BLAKE2B_BLOCK_SIZE || (length == 0 && key_length > 0))
		return;
	memcpy(block, input, length);
	blake2b_64_start(start, hash_key, key_length);
	if (blake2b_64_block(start, key_length > 0, block, length) != digest)
		fail_msg("key of %u, input of %u bytes", key_length, length);
}

static void blake2b_of_one_block_equals_recorded_digests(void **state)
{
	(void)state;
	for_each_vector("blake2b", check_blake2b_block);
}

static void check_md5(const char *rest)
{
	unsigned long long high, low;
	__u8 id[MD5_ID_LENGTH_MAX] = {0};
	struct md5_digest digest;
	unsigned int length;

	assert_int_equal(sscanf(rest, "%u %16llx%16llx", &length, &high, &low), 3);
	digest = md5(input, length);
	if (digest.high != high || digest.low != low)
		fail_msg("input of %u bytes", length);
	if (length > sizeof(id))
		return;
	memcpy(id, input, length);
	digest = md5_id(id, length);
	if (digest.high != high || digest.low != low)
		fail_msg("id of %u bytes", length);
}

static void md5_equals_recorded_digests(void **state)
{
	(void)state;
	assert_int_equal(for_each_vector("md5", check_md5), 141);
}

/* RFC 1321, appendix A.5 */
static void md5_equals_the_rfc(void **state)
{
	static const struct {
		const char *text;
		__u64 high, low;
	} suite[] = {
		{"", 0xd41d8cd98f00b204, 0xe9800998ecf8427e},
		{"a", 0x0cc175b9c0f1b6a8, 0x31c399e269772661},
		{"abc", 0x900150983cd24fb0, 0xd6963f7d28e17f72},
		{"message digest", 0xf96b697d7cb7938d, 0x525a2f31aaf161d0},
		{"abcdefghijklmnopqrstuvwxyz", 0xc3fcd3d76192e400, 0x7dfb496cca67e13b},
		{"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789",
		 0xd174ab98d277d9f5, 0xa5611c2c9f419d9f},
		{"12345678901234567890123456789012345678901234567890123456789012345678901234567890",
		 0x57edf4a22be3c955, 0xac49da2e2107b67a},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(suite) / sizeof(suite[0]); i++) {
		struct md5_digest digest = md5(suite[i].text, strlen(suite[i].text));

		assert_true(digest.high == suite[i].high && digest.low == suite[i].low);
	}
}

static void limits_agree(void **state)
{
	(void)state;
	assert_int_equal(ID_LENGTH_MAX, BLAKE2B_BLOCK_SIZE);
	assert_int_equal(ID_LENGTH_MAX, MD5_ID_LENGTH_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(blake2b_equals_recorded_digests),
		cmocka_unit_test(blake2b_of_one_block_equals_recorded_digests),
		cmocka_unit_test(md5_equals_recorded_digests),
		cmocka_unit_test(md5_equals_the_rfc),
		cmocka_unit_test(limits_agree),
	};

	return cmocka_run_group_tests_name("hash", tests, make_patterns, NULL);
}
