// SPDX-License-Identifier: MIT
//
//   driver ROUNDS CALLS SYMBOL ORIGINAL.so OURS.so
//
// Prints "NAME TAB NS TAB NS" for each problem: the best round of the original dispatcher and of ours, which
// take turns.
#include "dispatch.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>

namespace {

void *load(const char *library, const char *symbol) {
    void *handle = dlopen(library, RTLD_LAZY | RTLD_LOCAL);
    void *function = handle ? dlsym(handle, symbol) : nullptr;
    if (!function) {
        std::fprintf(stderr, "driver: %s\n", dlerror());
        std::exit(1);
    }
    return function;
}

double nanoseconds(void *function, const Problem &problem, long calls) {
    const auto start = std::chrono::steady_clock::now();
    call(function, problem, calls);
    const std::chrono::duration<double, std::nano> taken = std::chrono::steady_clock::now() - start;
    return taken.count() / static_cast<double>(calls);
}

} // namespace

int main(int, char **argv) {
    const int rounds = std::atoi(argv[1]);
    const long calls = std::atol(argv[2]);
    void *const functions[] = {load(argv[4], argv[3]), load(argv[5], argv[3])};
    for (const Problem &problem : problems) {
        if (call(functions[0], problem, 1) != call(functions[1], problem, 1)) {
            std::fprintf(stderr, "driver: different results for %s\n", problem.name.c_str());
            return 1;
        }
        double best[] = {1e18, 1e18};
        for (int round = 0; round < rounds; ++round)
            for (int which = 0; which < 2; ++which)
                best[which] = std::min(best[which], nanoseconds(functions[which], problem, calls));
        std::printf("%s\t%.0f\t%.0f\n", problem.name.c_str(), best[0], best[1]);
    }
}
