// SPDX-License-Identifier: MIT
//
// A value made at first use, and never destroyed: a thread may still need it while the process exits.
#pragma once

#include <atomic>

namespace [[gnu::visibility("hidden")]] ck_jit {

// Not a function-local static: its hidden guard would stay locked for ever in a child that was forked
// while another thread made the value. Here two threads may make it, and one result is dropped.
template <typename T> class Lazy {
  public:
    template <typename Make> const T &get(Make make) {
        if (const T *made = value_.load(std::memory_order_acquire))
            return *made;
        const T *mine = new T(make());
        const T *expected = nullptr;
        if (value_.compare_exchange_strong(expected, mine, std::memory_order_acq_rel))
            return *mine;
        delete mine;
        return *expected;
    }

  private:
    std::atomic<const T *> value_{nullptr};
};

} // namespace ck_jit
