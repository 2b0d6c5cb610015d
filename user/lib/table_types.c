/* SPDX-License-Identifier: BSD-2-Clause */
#include "lib/table_types.h"

#include <bpf/btf.h>
#include <stdbool.h>
#include <stddef.h>
#include <warmpath/layout.h>

enum field_type {
	FIELD_U16,
	FIELD_U32,
	FIELD_U64,
	FIELD_DIALECT,
	FIELD_HASH_STATE,
	FIELD_TYPE_COUNT,
};

struct field {
	const char *name;
	enum field_type type;
	__u32 offset; /* bytes */
};

#define FIELD(structure, member, type)                            \
	{                                                         \
#member, type, offsetof(struct structure, member) \
	}

static const struct field header_fields[] = {
	FIELD(ring_header, generation, FIELD_U64),
	FIELD(ring_header, dialect, FIELD_DIALECT),
	FIELD(ring_header, slot, FIELD_U32),
	FIELD(ring_header, point_count, FIELD_U32),
	FIELD(ring_header, index_bits, FIELD_U32),
	FIELD(ring_header, member_count, FIELD_U32),
	FIELD(ring_header, hash_keyed, FIELD_U32),
	FIELD(ring_header, hash_state, FIELD_HASH_STATE),
	{0},
};

static const struct field point_fields[] = {
	FIELD(ring_point, hash, FIELD_U64),
	FIELD(ring_point, replica, FIELD_U32),
	FIELD(ring_point, reserved, FIELD_U32),
	{0},
};

static const struct field bucket_fields[] = {
	FIELD(ring_bucket, first_point, FIELD_U32),
	FIELD(ring_bucket, first_fraction, FIELD_U32),
	FIELD(ring_bucket, point_count, FIELD_U16),
	FIELD(ring_bucket, replica, FIELD_U16),
	FIELD(ring_bucket, next_replica, FIELD_U16),
	FIELD(ring_bucket, reserved, FIELD_U16),
	{0},
};

static const struct field member_fields[] = {
	FIELD(ring_member, replica, FIELD_U32),
	{0},
};

static const struct field placement_fields[] = {
	FIELD(placement, replica, FIELD_U32),
	FIELD(placement, incarnation, FIELD_U32),
	FIELD(placement, prompt_tokens, FIELD_U32),
	FIELD(placement, reserved, FIELD_U32),
	FIELD(placement, served_nanoseconds, FIELD_U64),
	{0},
};

static const struct {
	const char *name;
	__u32 size;
	const struct field *fields;
} structures[] = {
	{"ring_header", sizeof(struct ring_header), header_fields},
	{"ring_point", sizeof(struct ring_point), point_fields},
	{"ring_bucket", sizeof(struct ring_bucket), bucket_fields},
	{"ring_member", sizeof(struct ring_member), member_fields},
	{"placement", sizeof(struct placement), placement_fields},
};

/* The type ids of the fields, by enum field_type. */
static bool add_field_types(struct btf *types, int ids[FIELD_TYPE_COUNT])
{
	ids[FIELD_U16] = btf__add_int(types, "__u16", 2, 0);
	ids[FIELD_U32] = btf__add_int(types, "__u32", 4, 0);
	ids[FIELD_U64] = btf__add_int(types, "__u64", 8, 0);
	ids[FIELD_DIALECT] = btf__add_enum(types, "ring_dialect", 4);
	if (btf__add_enum_value(types, "RING_LLM", RING_LLM) < 0 ||
	    btf__add_enum_value(types, "RING_REPLICA_ROUTER", RING_REPLICA_ROUTER) < 0)
		return false;
	ids[FIELD_HASH_STATE] = btf__add_array(types, ids[FIELD_U32], ids[FIELD_U64], 8);
	for (int i = 0; i < FIELD_TYPE_COUNT; i++)
		if (ids[i] < 0)
			return false;
	return true;
}

static bool add_structures(struct btf *types, const int ids[FIELD_TYPE_COUNT])
{
	for (size_t i = 0; i < sizeof(structures) / sizeof(structures[0]); i++) {
		if (btf__add_struct(types, structures[i].name, structures[i].size) < 0)
			return false;
		for (const struct field *field = structures[i].fields; field->name; field++)
			if (btf__add_field(types, field->name, ids[field->type], field->offset * 8,
					   0) < 0)
				return false;
	}
	return true;
}

struct btf *table_types_load(void)
{
	int ids[FIELD_TYPE_COUNT];
	struct btf *types = btf__new_empty();

	if (!types)
		return NULL;
	if (!add_field_types(types, ids) || !add_structures(types, ids) ||
	    btf__load_into_kernel(types)) {
		btf__free(types);
		return NULL;
	}
	return types;
}
