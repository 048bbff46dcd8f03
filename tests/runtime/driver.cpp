// Loads a toy library as a Python extension would, makes calls from several threads and prints what came
// back.
//
//   driver LIB [--threads T] [--x X] CALL...
//   CALL: i:INDEX, n:NAME (by name), t:A,B,C (three blobs at once, C may be -1), p:NAME (prefetch), s:SECONDS
//   (sleep),
//         c:DIR (ck_jit_set_cache_dir), w:COMPILES (wait until that many compiles are done), e:FILE (make it,
//         empty), f:FILE (wait until it exists)
// Every thread makes all the calls. Prints "CALL RESULT" of the first thread, then "error TEXT" and "stats
// ...".
#include "ck_jit.h"

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <string>
#include <thread>
#include <unistd.h>
#include <vector>

namespace {

template <typename F> F *find(void *library, const char *name) {
    void *address = dlsym(library, name);
    if (!address) {
        std::fprintf(stderr, "driver: no %s\n", name);
        std::exit(2);
    }
    return reinterpret_cast<F *>(address);
}

struct Library {
    explicit Library(const char *path) : handle(dlopen(path, RTLD_NOW | RTLD_LOCAL)) {
        if (!handle) {
            std::fprintf(stderr, "driver: %s\n", dlerror());
            std::exit(2);
        }
    }
    void *handle;
    int (*call)(int, int) = find<int(int, int)>(handle, "toy_call");
    int (*call3)(int, int, int, int) = find<int(int, int, int, int)>(handle, "toy_call3");
    int (*by_name)(const char *, int) = find<int(const char *, int)>(handle, "toy_call_by_name");
    decltype(&ck_jit_prefetch) prefetch = find<int(const char *const *, size_t)>(handle, "ck_jit_prefetch");
    decltype(&ck_jit_stats) stats = find<int(ck_jit_stats_t *)>(handle, "ck_jit_stats");
    decltype(&ck_jit_last_error) last_error = find<size_t(char *, size_t)>(handle, "ck_jit_last_error");
    decltype(&ck_jit_set_cache_dir) set_cache_dir = find<void(const char *)>(handle, "ck_jit_set_cache_dir");
};

void sleep_seconds(double seconds) { std::this_thread::sleep_for(std::chrono::duration<double>(seconds)); }

int make_call(const Library &library, const std::string &call, int x) {
    const std::string value = call.substr(2);
    switch (call[0]) {
    case 'i':
        return library.call(std::atoi(value.c_str()), x);
    case 'n':
        return library.by_name(value.c_str(), x);
    case 't': {
        int a, b, c;
        std::sscanf(value.c_str(), "%d,%d,%d", &a, &b, &c);
        return library.call3(a, b, c, x);
    }
    case 'p': {
        const char *name = value.c_str();
        return library.prefetch(&name, 1);
    }
    case 'c':
        library.set_cache_dir(value.c_str());
        return 0;
    case 's':
        sleep_seconds(std::atof(value.c_str()));
        return 0;
    case 'e':
        std::fclose(std::fopen(value.c_str(), "w"));
        return 0;
    case 'f':
        while (access(value.c_str(), F_OK) != 0)
            sleep_seconds(0.005);
        return 0;
    case 'w': {
        ck_jit_stats_t stats;
        for (library.stats(&stats); stats.compiles < std::strtoull(value.c_str(), nullptr, 10);
             library.stats(&stats))
            sleep_seconds(0.01);
        return 0;
    }
    }
    std::fprintf(stderr, "driver: what is %s?\n", call.c_str());
    std::exit(2);
}

} // namespace

int main(int argc, char **argv) {
    const Library library(argv[1]);
    int threads = 1, x = 1000;
    std::vector<std::string> calls;
    for (int i = 2; i < argc; ++i)
        if (!std::strcmp(argv[i], "--threads"))
            threads = std::atoi(argv[++i]);
        else if (!std::strcmp(argv[i], "--x"))
            x = std::atoi(argv[++i]);
        else
            calls.push_back(argv[i]);

    std::atomic<int> different{0};
    std::vector<int> results(calls.size());
    const auto all_calls = [&](std::vector<int> &out) {
        for (std::size_t i = 0; i < calls.size(); ++i)
            out[i] = make_call(library, calls[i], x);
    };
    std::vector<std::vector<int>> others(threads - 1, results);
    std::vector<std::thread> pool;
    for (auto &other : others)
        pool.emplace_back([&] { all_calls(other); });
    all_calls(results);
    for (auto &thread : pool)
        thread.join();
    for (const auto &other : others)
        different += other != results;

    for (std::size_t i = 0; i < calls.size(); ++i)
        std::printf("%s %d\n", calls[i].c_str(), results[i]);
    char error[4096];
    library.last_error(error, sizeof error);
    if (error[0])
        std::printf("error %s\n", error);
    ck_jit_stats_t stats;
    library.stats(&stats);
    std::printf("stats hits=%llu compiles=%llu waits=%llu failures=%llu different=%d\n",
                static_cast<unsigned long long>(stats.hits), static_cast<unsigned long long>(stats.compiles),
                static_cast<unsigned long long>(stats.waits), static_cast<unsigned long long>(stats.failures),
                different.load());
    return 0;
}
