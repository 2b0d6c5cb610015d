/* SPDX-License-Identifier: BSD-2-Clause */
#include "group.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "fixture.h"

void group_begin(void)
{
	if (geteuid() != 0) {
		printf("1..1\nok 1 # SKIP needs root\n");
		exit(EXIT_SUCCESS);
	}
	fixture_prepare();
	if (world_make())
		exit(EXIT_FAILURE);
}

int group_load(void **state)
{
	(void)state;
	return world_load(false);
}

int group_load_services(void **state)
{
	return group_load(state) ? -1 : world_configure(fixture_services, SERVICE_COUNT);
}

int group_unload(void **state)
{
	(void)state;
	world_unload();
	return 0;
}
