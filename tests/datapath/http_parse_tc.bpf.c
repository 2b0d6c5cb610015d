// SPDX-License-Identifier: GPL-2.0-only
/* The programs of http_parse.bpf.c for tc: the bytes come out of an skb. */
#define HTTP_PARSE_TC
#include "http_parse.bpf.c"
