// SPDX-License-Identifier: MIT
//
// The mutexes of the runtime, and what must happen to them when the process forks.
#pragma once

#include "file_io.h"

#include <sys/types.h>

namespace [[gnu::visibility("hidden")]] ck_jit {

// Held for a few instructions at a time, never across a compile, a wait for a file lock or any other
// system call that may take long: fork() has to take it first. Everything that several threads change is
// under it: the states of the blobs (blob_state.cpp), the cache directory in force (environment.cpp), the
// two lists below.
class StateLock {
  public:
    StateLock();
    ~StateLock();
    StateLock(const StateLock &) = delete;
    StateLock &operator=(const StateLock &) = delete;

    // Sleeps until another thread calls notify_all(); may wake without reason.
    void wait();
    void notify_all();
};

// Held across dlopen, and by fork(): glibc (2.36 at least) forks with the loader's lock as it is, and a child
// that was made while another thread had it would wait for ever in its own dlopen. Taken before a StateLock,
// never under one. Recursive, because constructors run under it.
class LoadLock {
  public:
    LoadLock();
    ~LoadLock();
    LoadLock(const LoadLock &) = delete;
    LoadLock &operator=(const LoadLock &) = delete;
};

// Once before the first cold call does anything: makes fork() safe, and keeps the library in memory from
// now on, because its threads and fork handlers may outlive a dlclose().
void prepare_process();

// A descriptor that a forked child must not keep: a file lock is held as long as any copy of it is open,
// and a build sees that its owner died when the last copy of a pipe's end is closed.
class ParentOnlyFd {
  public:
    ParentOnlyFd() = default;
    explicit ParentOnlyFd(Fd fd);
    ParentOnlyFd(ParentOnlyFd &&other) noexcept;
    ParentOnlyFd &operator=(ParentOnlyFd &&other) noexcept;
    ~ParentOnlyFd() { reset(); }

    int get() const { return fd_; }
    explicit operator bool() const { return fd_ >= 0; }
    void reset();

  private:
    int fd_ = -1;
};

// A running build, from its start until just before it is reaped. Its process group is killed when the
// process exits.
class RunningBuild {
  public:
    explicit RunningBuild(pid_t pid);
    ~RunningBuild();
    RunningBuild(const RunningBuild &) = delete;
    RunningBuild &operator=(const RunningBuild &) = delete;

  private:
    pid_t pid_;
};

// Forgets, in a forked child, that threads of the parent were at work. Defined in blob_state.cpp.
void forget_other_threads();

} // namespace ck_jit
