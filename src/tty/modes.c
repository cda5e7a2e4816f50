/* SPDX-License-Identifier: Apache-2.0 */
#include "tty/modes.h"

#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"

enum { GROUND, ESCAPE, CSI, SKIP };

/* In the order of the reset: the alternate screen is left last, so that what belongs to
 * it goes with it. */
static const struct {
	uint16_t mode;
	char normal;
} table[] = {
	{ 1000, 'l' }, { 1002, 'l' }, { 1003, 'l' },
	{ 1006, 'l' }, { 1016, 'l' },		     /* mouse */
	{ 1004, 'l' },				     /* focus events */
	{ 2004, 'l' },				     /* bracketed paste */
	{ 2026, 'l' },				     /* synchronised output */
	{ 2031, 'l' },				     /* colour scheme reports */
	{ 1, 'l' },				     /* application cursor keys */
	{ 47, 'l' },   { 1047, 'l' }, { 1049, 'l' }, /* alternate screen */
	{ 25, 'h' },				     /* cursor */
};

static void set_mode(struct modes *m, uint16_t mode, char final)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(table); i++) {
		if (table[i].mode != mode)
			continue;
		if (final == table[i].normal)
			m->set &= ~(1U << i);
		else
			m->set |= 1U << i;
	}
}

static void sequence(struct modes *m, char final)
{
	uint16_t first = m->params[0];
	uint8_t i;

	if (m->mark == '?' && (final == 'h' || final == 'l')) {
		for (i = 0; i < m->nparams; i++)
			set_mode(m, m->params[i], final);
	} else if (m->mark == '>' && final == 'u') {
		m->kitty += m->kitty < UINT8_MAX;
	} else if (m->mark == '<' && final == 'u') {
		first += first == 0;
		m->kitty = first >= m->kitty ? 0 : (uint8_t)(m->kitty - first);
	} else if (m->mark == '=' && final == 'u') {
		m->kitty_set = first != 0;
	} else if (m->mark == '>' && final == 'm' && first == 4) {
		m->other_keys = m->nparams > 1 && m->params[1] != 0;
	}
}

static void begin(struct modes *m)
{
	memset(m->params, 0, sizeof(m->params));
	m->nparams = 1;
	m->mark = 0;
	m->state = CSI;
}

static void digit(struct modes *m, char c)
{
	uint16_t *p = &m->params[m->nparams - 1];

	*p = *p > 6000 ? 60000 : (uint16_t)(*p * 10 + (c - '0'));
}

static void csi(struct modes *m, char c)
{
	if (c >= '0' && c <= '9') {
		digit(m, c);
	} else if (c == ';') {
		if (m->nparams == ARRAY_SIZE(m->params))
			m->state = SKIP;
		else
			m->nparams++;
	} else if (c >= '<' && c <= '?') {
		m->mark = c;
	} else if (c >= '@' && c <= '~') {
		m->state = GROUND;
		sequence(m, c);
	} else if (c == ':' || (c >= ' ' && c <= '/')) {
		m->state = SKIP;
	}
}

static void step(struct modes *m, char c)
{
	if (c == '\033') {
		m->state = ESCAPE;
	} else if (c == '\030' || c == '\032') {
		m->state = GROUND;
	} else if (m->state == ESCAPE) {
		m->state = GROUND;
		if (c == '[')
			begin(m);
		else if (c == 'c') /* full reset */
			memset(m, 0, sizeof(*m));
	} else if (m->state == CSI) {
		csi(m, c);
	} else if (m->state == SKIP && c >= '@' && c <= '~') {
		m->state = GROUND;
	}
}

void modes_feed(struct modes *m, const char *s, size_t len)
{
	const char *end = s + len;

	while (s < end) {
		if (m->state == GROUND) {
			s = memchr(s, '\033', (size_t)(end - s));
			if (!s)
				return;
		}
		step(m, *s++);
	}
}

size_t modes_reset(const struct modes *m, char out[MODES_RESET_MAX])
{
	size_t n = 0, i;

	if (!m->set && !m->kitty && !m->kitty_set && !m->other_keys)
		return 0;
	/* CAN ends a sequence that was cut off in the middle. */
	n += (size_t)snprintf(out, MODES_RESET_MAX, "\030");
	if (m->kitty)
		n += (size_t)snprintf(out + n, MODES_RESET_MAX - n, "\033[<%uu",
				      (unsigned)m->kitty);
	if (m->kitty_set)
		n += (size_t)snprintf(out + n, MODES_RESET_MAX - n, "\033[=0u");
	if (m->other_keys)
		n += (size_t)snprintf(out + n, MODES_RESET_MAX - n, "\033[>4;0m");
	for (i = 0; i < ARRAY_SIZE(table); i++)
		if (m->set & (1U << i))
			n += (size_t)snprintf(out + n, MODES_RESET_MAX - n, "\033[?%u%c",
					      (unsigned)table[i].mode, table[i].normal);
	n += (size_t)snprintf(out + n, MODES_RESET_MAX - n, "\033[m");
	return n;
}
