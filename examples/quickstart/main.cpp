// SPDX-License-Identifier: MIT
//
// Calls both lazy libraries once in each direction and prints what that cost.
#include "attention.h"
#include "ck_jit.h"
#include "device_memory.h"

#include <dlfcn.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <exception>
#include <functional>
#include <numeric>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;

// A function of one of the two lazy libraries; both have their own copy of each.
template <typename Function> Function *symbol(const char *library, const char *name) {
    void *handle = dlopen(library, RTLD_NOW | RTLD_NOLOAD);
    void *address = handle ? dlsym(handle, name) : nullptr;
    if (!address)
        throw std::runtime_error(std::string(library) + " does not export " + name);
    return reinterpret_cast<Function *>(address);
}

ck_jit_stats_t stats(const char *library) {
    ck_jit_stats_t result{};
    symbol<decltype(ck_jit_stats)>(library, "ck_jit_stats")(&result);
    return result;
}

std::string last_error(const char *library) {
    char text[4096] = "";
    symbol<decltype(ck_jit_last_error)>(library, "ck_jit_last_error")(text, sizeof text);
    return text;
}

// The stand-in HIP library counts launches; a real one has no such functions.
template <typename Function> Function *standin(const char *name) {
    return reinterpret_cast<Function *>(dlsym(RTLD_DEFAULT, name));
}

double seconds_since(Clock::time_point start) {
    return std::chrono::duration<double>(Clock::now() - start).count();
}

struct Site {
    const char *name;
    const char *library;
    std::function<float()> call;
};

long timed_call(const Site &site) {
    const auto start = Clock::now();
    site.call();
    return std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - start).count();
}

// Without the recording, which costs more than the call. On a GPU, without the kernel: launches do not wait
// for it.
long median_call(const Site &site) {
    auto *set_recording = standin<void(int)>("hip_standin_set_recording");
    if (set_recording)
        set_recording(0);
    std::vector<long> times;
    for (int i = 0; i < 501; ++i)
        times.push_back(timed_call(site));
    if (set_recording)
        set_recording(1);
    check(hipDeviceSynchronize(), "hipDeviceSynchronize");
    std::nth_element(times.begin(), times.begin() + times.size() / 2, times.end());
    return times[times.size() / 2];
}

// One line of the table.
std::string run(const Site &site) {
    auto *launch_count = standin<std::size_t()>("hip_standin_launch_count");
    const ck_jit_stats_t before = stats(site.library);
    const std::size_t launches_before = launch_count ? launch_count() : 0;
    const auto start = Clock::now();
    const float result = site.call();
    const double first = seconds_since(start);
    if (result < 0) {
        const std::string why = last_error(site.library);
        throw std::runtime_error(std::string(site.name) + ": " +
                                 (why.empty() ? "the library has no kernel for this call" : why));
    }
    check(hipDeviceSynchronize(), "hipDeviceSynchronize");
    const std::size_t launches = launch_count ? launch_count() - launches_before : 0;
    const ck_jit_stats_t after = stats(site.library);
    const auto blobs = after.hits + after.compiles - before.hits - before.compiles;
    const long second = timed_call(site);
    check(hipDeviceSynchronize(), "hipDeviceSynchronize");
    const long median = median_call(site);

    char line[200], launched[24] = "-";
    if (launch_count)
        std::snprintf(launched, sizeof launched, "%zu", launches);
    std::snprintf(line, sizeof line, "%-14s %5llu %10.1f %12.2f %15ld %15ld %9s\n", site.name,
                  static_cast<unsigned long long>(blobs), after.compile_seconds - before.compile_seconds,
                  first, second, median, launched);
    return line;
}

std::vector<int> starts(int count, int step) {
    std::vector<int> result(count + 1);
    for (int i = 0; i <= count; ++i)
        result[i] = i * step;
    return result;
}

void run_all() {
    const Shape shape{.batch = 2, .heads = 4, .queries = 128, .keys = 256, .size = 128};
    constexpr int splits = 2, bf16 = 2;
    const DeviceMemory q(shape.query_elements() * bf16), k(shape.key_elements() * bf16),
        v(shape.key_elements() * bf16), o(shape.query_elements() * bf16), lse(shape.rows() * sizeof(float));
    const ForwardTensors tensors{q.get(), k.get(), v.get(), o.get(), lse.get()};

    const DeviceMemory o_acc(splits * shape.query_elements() * sizeof(float)),
        lse_acc(splits * shape.rows() * sizeof(float));

    std::vector<int> page_numbers(shape.batch * shape.keys);
    std::iota(page_numbers.begin(), page_numbers.end(), 0);
    const DeviceMemory query_starts(starts(shape.batch, shape.queries)),
        page_starts(starts(shape.batch, shape.keys)), page_rows(page_numbers);
    const Pages pages{query_starts.get(), page_starts.get(), page_rows.get()};

    const DeviceMemory d_o(shape.query_elements() * bf16), d(shape.rows() * sizeof(float)),
        dq(shape.query_elements() * bf16), dk(shape.key_elements() * bf16), dv(shape.key_elements() * bf16),
        dq_acc(shape.query_elements() * sizeof(float));
    const BackwardTensors gradients{q.get(), k.get(),  v.get(),  o.get(),  lse.get(),   d_o.get(),
                                    d.get(), dq.get(), dk.get(), dv.get(), dq_acc.get()};

    const Site sites[] = {
        {"forward", "libmha_fwd.so", [&] { return forward(shape, tensors, false, {}); }},
        {"split-KV", "libmha_fwd.so",
         [&] { return split_forward(shape, tensors, splits, o_acc.get(), lse_acc.get(), {}); }},
        {"batch prefill", "libmha_fwd.so", [&] { return batch_prefill(shape, tensors, pages, {}); }},
        {"backward", "libmha_bwd.so", [&] { return backward(shape, gradients, true, {}); }},
    };
    // Printed when it is whole: while kernels compile, the libraries say so on stderr.
    std::string table;
    for (const Site &site : sites)
        table += run(site);
    std::printf("%-14s %5s %10s %12s %15s %15s %9s\n%s", "site", "blobs", "compile s", "1st call s",
                "2nd call ns", "median call ns", "launches", table.c_str());
}

} // namespace

int main() {
    try {
        run_all();
    } catch (const std::exception &error) {
        std::fprintf(stderr, "quickstart: %s\n", error.what());
        return 1;
    }
}
