// A program that links the lazy library and asks it how often it has compiled a kernel.
#include "ck_jit.h"

#include <cstdio>

int main() {
    ck_jit_stats_t stats{};
    if (ck_jit_stats(&stats) != 0)
        return 1;
    std::printf("%llu kernels compiled\n", static_cast<unsigned long long>(stats.compiles));
    return 0;
}
