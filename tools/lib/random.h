/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Random numbers that are a function of their seed alone, on every machine: what makes a plan reproducible.
 *
 * Owns: the generator (splitmix64: Steele, Lea, Flood, "Fast splittable pseudorandom number generators", 2014)
 * and the distributions the tools draw from. May not know: what is drawn.
 */
#ifndef TOOLS_RANDOM_H
#define TOOLS_RANDOM_H

#include <math.h>
#include <stdint.h>

struct random {
	uint64_t state;
};

/* One step of splitmix64's output function: a bijection that spreads every input bit over all output bits. */
static inline uint64_t random_mix(uint64_t value)
{
	value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9ull;
	value = (value ^ (value >> 27)) * 0x94d049bb133111ebull;
	return value ^ (value >> 31);
}

/* A seed for (seed, what, index): streams that differ in any of the three are independent. */
static inline uint64_t random_seed(uint64_t seed, uint64_t what, uint64_t index)
{
	return random_mix(random_mix(random_mix(seed + 0x9e3779b97f4a7c15ull) + what) + index);
}

static inline uint64_t random_u64(struct random *random)
{
	random->state += 0x9e3779b97f4a7c15ull;
	return random_mix(random->state);
}

/* In [0, 1), 53 bits. */
static inline double random_unit(struct random *random)
{
	return (double)(random_u64(random) >> 11) * 0x1.0p-53;
}

/* A whole number from low to high, both included; low <= high. */
static inline uint32_t random_between(struct random *random, uint32_t low, uint32_t high)
{
	return low + (uint32_t)(random_unit(random) * ((double)high - low + 1));
}

/* Exponential with the given mean. */
static inline double random_exponential(struct random *random, double mean)
{
	return -mean * log1p(-random_unit(random));
}

#endif /* TOOLS_RANDOM_H */
