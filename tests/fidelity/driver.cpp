// SPDX-License-Identifier: MIT
//
// driver DIRECTION [NAME=NUMBER]...: makes one call in four ways, and writes what came back between what CK
// printed. LD_LIBRARY_PATH chooses the library under test: the original or the lazy one.
#include "call.h"

#include <cstdio>
#include <iostream>

int main(int argc, char **argv) {
    const auto direction = Direction::all().find(argc < 2 ? "" : argv[1]);
    if (direction == Direction::all().end()) {
        std::fprintf(stderr, "usage: driver DIRECTION [NAME=NUMBER]...\n");
        return 2;
    }
    const Call call(argc - 2, argv + 2);
    for (const int log_level : {0, 1}) {
        for (const bool time_kernel : {false, true}) {
            ck_tile::stream_config stream{};
            stream.log_level_ = log_level;
            stream.time_kernel_ = time_kernel;
            stream.cold_niters_ = 2;
            stream.nrepeat_ = 3;
            const float result = direction->second(call, stream);
            std::cout << std::flush;
            std::printf("\n[log_level=%d time_kernel=%d returned %a]\n", log_level, time_kernel, result);
            std::fflush(stdout);
        }
    }
}
