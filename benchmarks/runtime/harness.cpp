// SPDX-License-Identifier: MIT
//
//   harness ROUNDS SECONDS NAME=FWD_LIB,BWD_LIB...
//
// Prints "KIND THREADS NAME NS" for each variant in each round. NS is the time on the wall divided by the
// number of calls of all threads together. The variants take turns within a round, so that a busy moment of
// the machine hits all of them.
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>
#include <string>
#include <thread>
#include <vector>

namespace {

using Calls = bool (*)(int kind, long calls);

Calls load(const std::string &path) {
    void *handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    void *calls = handle ? dlsym(handle, "bench_calls") : nullptr;
    if (!calls) {
        std::fprintf(stderr, "harness: %s\n", dlerror());
        std::exit(1);
    }
    return reinterpret_cast<Calls>(calls);
}

struct Variant {
    std::string name;
    Calls of_kind[4]; // fwd, splitkv, batch_prefill, bwd
    long calls;
};

using Clock = std::chrono::steady_clock;

// From the moment all threads are there to the moment all are done.
double seconds_for(Calls calls, int kind, int threads, long count) {
    std::atomic<int> missing{threads};
    Clock::time_point start;
    const auto work = [&](bool first) {
        if (first)
            start = Clock::now();
        --missing;
        while (missing > 0)
            std::this_thread::yield();
        if (!calls(kind, count)) {
            std::fprintf(stderr, "harness: a call failed\n");
            std::exit(1);
        }
    };
    std::vector<std::thread> others;
    for (int i = 1; i < threads; ++i)
        others.emplace_back(work, false);
    while (missing > 1)
        std::this_thread::yield();
    work(true);
    for (auto &thread : others)
        thread.join();
    return std::chrono::duration<double>(Clock::now() - start).count();
}

long calls_that_take(double seconds, Calls calls, int kind, int threads) {
    long count = 4;
    while (seconds_for(calls, kind, threads, count) < seconds)
        count *= 2;
    return count;
}

} // namespace

int main(int argc, char **argv) {
    static const char *const kinds[] = {"fwd", "splitkv", "batch_prefill", "bwd"};
    static const int threads[] = {1, 8};
    const int rounds = std::atoi(argv[1]);
    const double seconds = std::atof(argv[2]);
    std::vector<Variant> variants;
    for (int i = 3; i < argc; ++i) {
        const std::string text = argv[i];
        const std::size_t equals = text.find('='), comma = text.find(',');
        const Calls fwd = load(text.substr(equals + 1, comma - equals - 1)),
                    bwd = load(text.substr(comma + 1));
        variants.push_back({text.substr(0, equals), {fwd, fwd, fwd, bwd}, 0});
    }
    for (int kind = 0; kind < 4; ++kind)
        for (int t = 0; t < 2; ++t) {
            for (Variant &variant : variants) {
                seconds_for(variant.of_kind[kind], kind, 1, 1); // the cold call
                variant.calls = calls_that_take(seconds, variant.of_kind[kind], kind, threads[t]);
            }
            for (int round = 0; round < rounds; ++round)
                for (const Variant &variant : variants) {
                    const double took = seconds_for(variant.of_kind[kind], kind, threads[t], variant.calls);
                    const double ns = took * 1e9 / static_cast<double>(variant.calls * threads[t]);
                    std::printf("%s %d %s %.3f\n", kinds[kind], threads[t], variant.name.c_str(), ns);
                }
        }
    return 0;
}
