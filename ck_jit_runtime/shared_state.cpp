// SPDX-License-Identifier: MIT
#include "shared_state.h"

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdlib>
#include <dlfcn.h>
#include <new>
#include <pthread.h>
#include <unistd.h>
#include <vector>

namespace ck_jit {

namespace {

// Constant-initialised and never destroyed: usable before main() and while the process exits.
pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
pthread_mutex_t loading = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;

std::vector<int> &parent_only_fds() {
    static auto *fds = new std::vector<int>;
    return *fds;
}

std::vector<pid_t> &running_builds() {
    static auto *builds = new std::vector<pid_t>;
    return *builds;
}

void before_fork() {
    pthread_mutex_lock(&loading);
    pthread_mutex_lock(&mutex);
}

void after_fork_in_parent() {
    pthread_mutex_unlock(&mutex);
    pthread_mutex_unlock(&loading);
}

void after_fork_in_child() {
    for (const int fd : parent_only_fds())
        ::close(fd);
    parent_only_fds().clear();
    running_builds().clear();
    forget_other_threads();
    // The parent's waiting threads are still counted in the condition variable.
    changed = PTHREAD_COND_INITIALIZER;
    pthread_mutex_unlock(&mutex);
    // Recursive mutexes know their owner by its thread id, which is another one now.
    loading = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
}

void at_process_exit() {
    const StateLock lock;
    for (const pid_t pid : running_builds())
        ::kill(-pid, SIGKILL);
}

void keep_library_loaded() {
    Dl_info info{};
    if (::dladdr(reinterpret_cast<void *>(&keep_library_loaded), &info) && info.dli_fname)
        ::dlopen(info.dli_fname,
                 RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE); // null for a main program: it stays anyway
}

} // namespace

StateLock::StateLock() { pthread_mutex_lock(&mutex); }
StateLock::~StateLock() { pthread_mutex_unlock(&mutex); }
void StateLock::wait() { pthread_cond_wait(&changed, &mutex); }
void StateLock::notify_all() { pthread_cond_broadcast(&changed); }

LoadLock::LoadLock() { pthread_mutex_lock(&loading); }
LoadLock::~LoadLock() { pthread_mutex_unlock(&loading); }

void prepare_process() {
    static std::atomic<bool> prepared{false};
    if (prepared.load(std::memory_order_acquire))
        return;
    keep_library_loaded(); // not under our mutex: the loader has locks of its own
    const StateLock lock;
    if (prepared.load(std::memory_order_relaxed))
        return;
    parent_only_fds();
    running_builds();
    if (pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child) != 0 ||
        std::atexit(at_process_exit) != 0)
        throw std::bad_alloc();
    prepared.store(true, std::memory_order_release);
}

ParentOnlyFd::ParentOnlyFd(Fd fd) {
    const StateLock lock;
    parent_only_fds().push_back(fd.get());
    fd_ = fd.release();
}

ParentOnlyFd::ParentOnlyFd(ParentOnlyFd &&other) noexcept : fd_(other.fd_) { other.fd_ = -1; }

ParentOnlyFd &ParentOnlyFd::operator=(ParentOnlyFd &&other) noexcept {
    if (this != &other) {
        reset();
        fd_ = other.fd_;
        other.fd_ = -1;
    }
    return *this;
}

void ParentOnlyFd::reset() {
    if (fd_ < 0)
        return;
    const StateLock
        lock; // close under it: a fork in between would close a number that somebody else has by then
    auto &fds = parent_only_fds();
    fds.erase(std::remove(fds.begin(), fds.end(), fd_), fds.end());
    ::close(fd_);
    fd_ = -1;
}

RunningBuild::RunningBuild(pid_t pid) : pid_(pid) {
    const StateLock lock;
    running_builds().push_back(pid);
}

RunningBuild::~RunningBuild() {
    const StateLock lock;
    auto &builds = running_builds();
    builds.erase(std::remove(builds.begin(), builds.end(), pid_), builds.end());
}

} // namespace ck_jit
