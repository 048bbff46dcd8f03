// SPDX-License-Identifier: MIT
//
// The functions of ck_jit.h. No exception leaves them.
#include "ck_jit.h"

#include "environment.h"
#include "failure.h"
#include "resolve.h"
#include "shared_state.h"
#include "stats.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <memory>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

namespace {

using namespace ck_jit;

std::vector<Blob> blobs_of(const char *const *names, size_t count) {
    std::vector<Blob> blobs;
    for (size_t i = 0; i < count; ++i) {
        if (!names || !names[i] || !names[i][0])
            throw Failure("ck_jit_prefetch: name number " + std::to_string(i) + " is null or empty");
        blobs.push_back(blob_by_name(names[i]));
    }
    return blobs;
}

// The blobs of a ck_jit_prefetch() call, worked off by several threads. Each takes one blob at a time, so
// that a call that needs a blob far down the list can compile it without waiting for its turn.
class Prefetch {
  public:
    explicit Prefetch(std::vector<Blob> blobs) : blobs_(std::move(blobs)) {}

    void work() noexcept {
        try {
            for (std::size_t i; (i = next_++) < blobs_.size();)
                bring_in({blobs_[i]}, Aim::compile_only); // says on stderr what failed
        } catch (const std::exception &) {
            // Out of memory. The call that needs the blob will tell.
        }
    }

  private:
    const std::vector<Blob> blobs_;
    std::atomic<std::size_t> next_{0};
};

void start_prefetch(std::vector<Blob> blobs) {
    const std::size_t threads = std::min<std::size_t>(blobs.size(), config().jobs);
    const auto prefetch = std::make_shared<Prefetch>(std::move(blobs));
    for (std::size_t i = 0; i < threads; ++i)
        try {
            std::thread([prefetch] { prefetch->work(); }).detach();
        } catch (const std::system_error &) {
            if (i == 0)
                throw; // otherwise those that run do all of it
        }
}

} // namespace

extern "C" {

void ck_jit_set_cache_dir(const char *path) {
    if (!path || !path[0])
        return;
    try {
        set_cache_dir(path);
    } catch (const std::exception &error) {
        set_last_error(error.what());
    }
}

size_t ck_jit_last_error(char *buffer, size_t size) { return copy_last_error(buffer, size); }

int ck_jit_prefetch(const char *const *names, size_t count) {
    try {
        prepare_process();
        start_prefetch(blobs_of(names, count));
        set_last_error("");
        return 0;
    } catch (const std::exception &error) {
        set_last_error(error.what());
        return -1;
    }
}

int ck_jit_stats(struct ck_jit_stats_t *stats) {
    if (!stats)
        return -1;
    *stats = read_stats();
    return 0;
}

} // extern "C"
