/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STET_FUZZ_H
#define STET_FUZZ_H

#include <stddef.h>
#include <stdint.h>

/*
 * One input, of any bytes. Each file beside this one is a target: linked with libFuzzer it
 * is fuzzed (make fuzz), linked with replay.c it is a unit test over its corpus.
 */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#endif
