// SPDX-License-Identifier: MIT
#include "blob_state.h"

#include "shared_state.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <unordered_map>
#include <utility>

namespace ck_jit {

namespace {

using Clock = std::chrono::steady_clock; // the time of day may jump

struct BlobState {
    bool busy = false;
    bool is_loaded = false;
    void *const *kernels = nullptr;
    std::optional<Library> own_copy;
    int failures = 0; // since the last success
    std::string error;
    Clock::time_point next_try;
};

// Under StateLock.
std::unordered_map<std::string, BlobState> &states() {
    static auto *map = new std::unordered_map<std::string, BlobState>;
    return *map;
}

std::chrono::seconds delay_after(int failures) {
    return std::chrono::seconds(std::min(60, 1 << std::min(failures - 1, 6)));
}

} // namespace

ClaimResult claim(const Blob &blob) {
    const StateLock lock;
    BlobState &state = states()[blob.name];
    if (state.is_loaded)
        return {Claim::loaded, "", state.kernels};
    if (state.busy)
        return {Claim::busy, ""};
    if (state.failures > 0 && Clock::now() < state.next_try)
        return {Claim::failed, state.error};
    state.busy = true;
    return {Claim::ours, ""};
}

void wait_while_busy(const std::string &name) {
    StateLock lock;
    while (states()[name].busy)
        lock.wait();
}

void Ownership::release() {
    states()[name_].busy = false;
    name_.clear();
}

Ownership::~Ownership() {
    if (!name_.empty())
        failed("given up: out of memory");
}

void Ownership::loaded(void *const *kernels) {
    StateLock lock;
    BlobState &state = states()[name_];
    state.is_loaded = true;
    state.kernels = kernels;
    release();
    lock.notify_all();
}

void Ownership::failed(const std::string &reason) {
    StateLock lock;
    BlobState &state = states()[name_];
    ++state.failures;
    state.error = reason;
    state.next_try = Clock::now() + delay_after(state.failures);
    release();
    lock.notify_all();
}

void Ownership::compiled(Library own_copy) {
    StateLock lock;
    BlobState &state = states()[name_];
    state.failures = 0;
    if (own_copy.owner)
        state.own_copy = std::move(own_copy);
    release();
    lock.notify_all();
}

std::optional<Library> Ownership::take_own_copy() {
    const StateLock lock;
    return std::exchange(states()[name_].own_copy, std::nullopt);
}

void forget_other_threads() {
    for (auto &[name, state] : states())
        state.busy = false;
}

} // namespace ck_jit
