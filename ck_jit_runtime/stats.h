// SPDX-License-Identifier: MIT
//
// The counters that ck_jit_stats() returns. Only cold calls count.
#pragma once

struct ck_jit_stats_t;

namespace [[gnu::visibility("hidden")]] ck_jit {

void count_hit();
void count_compile(double seconds);
void count_wait();
void count_failure();
ck_jit_stats_t read_stats();

} // namespace ck_jit
