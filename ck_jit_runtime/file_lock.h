// SPDX-License-Identifier: MIT
//
// Locks between the processes (and threads, and lazy libraries) of one user on one machine. The kernel holds
// them (flock), so they are free the moment their holder dies.
#pragma once

#include "shared_state.h"

#include <cstdint>
#include <string>

namespace [[gnu::visibility("hidden")]] ck_jit {

// Held from the constructor to the destructor. Where no lock directory can be had it locks nothing: the
// price is a second compile of the same blob, never a wrong file.
class FileLock {
  public:
    explicit FileLock(const std::string &name);
    ~FileLock();
    FileLock(const FileLock &) = delete;
    FileLock &operator=(const FileLock &) = delete;

    bool waited() const { return waited_; }

    // What a holder that we waited for left with leave_failure(); "" for nothing. It saves the processes
    // that wait from running the same failing compile one after another.
    std::string failure_while_waiting() const;
    void leave_failure(const std::string &text);

    // The lock file is not needed any more; removed when the lock is let go.
    void done() { remove_ = true; }

  private:
    bool try_path(const std::string &path);

    ParentOnlyFd fd_;
    std::string path_;
    std::int64_t started_;
    bool waited_ = false;
    bool remove_ = false;
};

// One of the CK_JIT_JOBS places for compiles on this machine; the constructor waits until one is free.
class JobSlot {
  public:
    JobSlot();

  private:
    ParentOnlyFd fd_;
};

} // namespace ck_jit
