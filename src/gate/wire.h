/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_GATE_WIRE_H
#define STET_GATE_WIRE_H

#include "base/buf.h"
#include "gate/gate.h"
#include "gate/image.h"

/*
 * The messages between the two halves. Up: packets of messages, each with its length before
 * it. A message is a head, then the strings that it counts, each with its NUL, then the
 * arguments, cut off where it would be too large. Down: one struct wire_answer each.
 */
enum wire_kind {
	WIRE_TELL = 1, /* settled: to be observed */
	WIRE_ASK,      /* a person is to decide; an answer is awaited */
	WIRE_BEFORE,   /* a checkpoint is due; an answer is awaited */
	WIRE_EXIT,     /* a process has ended: pid, and its status as seq */
};

enum { WIRE_ARGS_MAX = 65536, WIRE_MAX = WIRE_ARGS_MAX + 65536 };

/* A packet is filled up to here with messages, or holds a larger one alone. */
enum { WIRE_FILL = 32768 };

struct wire_head {
	uint32_t kind, outcome, verdict, flags;
	int32_t pid, ppid;
	uint64_t seq, argc;
	uint32_t args_len; /* as sent: whole strings only */
	uint32_t present;  /* bits: which of the strings below are there */
};

/* In this order. */
enum { WIRE_EXE, WIRE_KNOWN_AS, WIRE_CWD, WIRE_RULE, WIRE_WHY, WIRE_HINT, WIRE_STRINGS };

struct wire_answer {
	uint64_t seq;
	uint32_t yes;
};

/* Appends a message, whatever is in it. */
void wire_add(struct buf *out, const void *data, size_t len);

/* How many of @len bytes of messages go into the next packet. */
size_t wire_fill(const char *data, size_t len);

/*
 * Returns the length of the next *@message of a packet and moves *@data and *@left behind it.
 * 0: there is no other; -EPROTO.
 */
ssize_t wire_next(const char **data, size_t *left, const char **message);

/* Makes a message for @i and @v; flags of @h stay set. */
void wire_pack(struct buf *out, struct wire_head *h, const struct image *i,
	       const struct verdict *v);

struct wire_exec {
	struct wire_head head;
	struct exec_facts facts;
	struct verdict verdict;
	const char **argv;
};

/* Points into @data; x->argv is to be freed. 0 or -EPROTO. */
int wire_unpack(const char *data, size_t len, struct wire_exec *x);

#endif
