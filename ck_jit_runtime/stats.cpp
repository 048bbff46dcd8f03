// SPDX-License-Identifier: MIT
#include "stats.h"

#include "ck_jit.h"

#include <atomic>
#include <cstdint>

namespace ck_jit {

namespace {
std::atomic<std::uint64_t> hits{0}, compiles{0}, waits{0}, failures{0}, microseconds{0};
} // namespace

void count_hit() { ++hits; }
void count_wait() { ++waits; }
void count_failure() { ++failures; }

void count_compile(double seconds) {
    ++compiles;
    microseconds += static_cast<std::uint64_t>(seconds * 1e6);
}

ck_jit_stats_t read_stats() {
    ck_jit_stats_t stats{};
    stats.hits = hits;
    stats.compiles = compiles;
    stats.waits = waits;
    stats.failures = failures;
    stats.compile_seconds = static_cast<double>(microseconds) / 1e6;
    return stats;
}

} // namespace ck_jit
