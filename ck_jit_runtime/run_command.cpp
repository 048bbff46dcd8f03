// SPDX-License-Identifier: MIT
#include "run_command.h"

#include "failure.h"
#include "file_io.h"
#include "shared_state.h"

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

namespace ck_jit {

namespace {

using Clock = std::chrono::steady_clock; // the time of day may jump

struct Pipe {
    Fd read;
    Fd write;
};

// In an application that closed its stdin or stdout a pipe may get their numbers, which the child gives new
// meanings.
Fd above_stdio(Fd fd) {
    if (fd.get() > STDERR_FILENO)
        return fd;
    return Fd(::fcntl(fd.get(), F_DUPFD_CLOEXEC, STDERR_FILENO + 1));
}

Pipe make_pipe() {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0)
        throw Failure("cannot make a pipe: " + errno_text(errno));
    Pipe pipe{above_stdio(Fd(ends[0])), above_stdio(Fd(ends[1]))};
    if (!pipe.read || !pipe.write)
        throw Failure("cannot make a pipe: " + errno_text(errno));
    return pipe;
}

std::vector<char *> pointers(std::vector<std::string> &texts) {
    std::vector<char *> list;
    for (std::string &text : texts)
        list.push_back(text.data());
    list.push_back(nullptr);
    return list;
}

std::vector<std::string> child_environment(const std::vector<std::string> &added) {
    std::vector<std::string> all = added;
    for (char **variable = environ; variable && *variable; ++variable) {
        const std::string_view text = *variable;
        const std::string_view name = text.substr(0, text.find('=') + 1);
        bool replaced = false;
        for (const std::string &other : added)
            replaced = replaced || other.compare(0, name.size(), name) == 0;
        if (!replaced)
            all.emplace_back(text);
    }
    return all;
}

// Set-up of the child, freed in every case.
struct SpawnSetup {
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;

    SpawnSetup() {
        if (posix_spawn_file_actions_init(&actions) != 0 || posix_spawnattr_init(&attributes) != 0)
            throw std::bad_alloc();
    }
    ~SpawnSetup() {
        posix_spawn_file_actions_destroy(&actions);
        posix_spawnattr_destroy(&attributes);
    }
    SpawnSetup(const SpawnSetup &) = delete;
    SpawnSetup &operator=(const SpawnSetup &) = delete;

    void descriptors(int in, int out) {
        posix_spawn_file_actions_adddup2(&actions, in, STDIN_FILENO);
        posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
        posix_spawn_file_actions_adddup2(&actions, out, STDERR_FILENO);
#if __GLIBC_PREREQ(2, 34)
        // The application may have descriptors that are not close-on-exec.
        posix_spawn_file_actions_addclosefrom_np(&actions, STDERR_FILENO + 1);
#else
        for (int fd = STDERR_FILENO + 1; fd < 1024; ++fd)
            if (fd != in && fd != out)
                posix_spawn_file_actions_addclose(&actions, fd); // a closed one is no error
#endif
    }
    void directory(const std::string &path) {
#if __GLIBC_PREREQ(2, 29)
        if (!path.empty())
            posix_spawn_file_actions_addchdir_np(&actions, path.c_str());
#else
        (void)path;
#endif
    }
    void signals_and_group() {
        sigset_t all, none;
        sigfillset(&all);
        sigemptyset(&none);
        posix_spawnattr_setsigdefault(&attributes, &all);
        posix_spawnattr_setsigmask(&attributes, &none);
        posix_spawnattr_setpgroup(&attributes, 0); // so that a time limit ends its children too
        posix_spawnattr_setflags(&attributes,
                                 POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP);
    }
};

pid_t start(const Command &command, int in, int out) {
    SpawnSetup setup;
    setup.descriptors(in, out);
    setup.directory(command.directory);
    setup.signals_and_group();
    std::vector<std::string> arguments = command.arguments;
    std::vector<std::string> environment = child_environment(command.environment);
    pid_t pid = -1;
    const int error = posix_spawn(&pid, arguments[0].c_str(), &setup.actions, &setup.attributes,
                                  pointers(arguments).data(), pointers(environment).data());
    if (error != 0)
        throw Failure("cannot start " + arguments[0] + ": " + errno_text(error));
    return pid;
}

// Readable when the child has ended; absent before Linux 5.3.
Fd open_pidfd(pid_t pid) {
#ifdef SYS_pidfd_open
    return Fd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
#else
    (void)pid;
    return Fd();
#endif
}

// One read. False at the end of the output.
bool forward_output(int fd, const std::function<void(std::string_view)> &output) {
    char buffer[65536];
    const ssize_t got = ::read(fd, buffer, sizeof buffer);
    if (got > 0)
        output(std::string_view(buffer, static_cast<std::size_t>(got)));
    return got > 0 || (got < 0 && (errno == EINTR || errno == EAGAIN));
}

// A process the child left behind may keep the pipe open for ever, so take only what is there by now.
void drain(int fd, const std::function<void(std::string_view)> &output) {
    pollfd ready{fd, POLLIN, 0};
    for (int reads = 0; reads < 64 && ::poll(&ready, 1, 0) > 0; ++reads)
        if (!forward_output(fd, output))
            return;
}

bool has_ended(pid_t pid) {
    siginfo_t info{};
    const int result = ::waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOHANG | WNOWAIT);
    return result != 0 || info.si_pid != 0; // an error: somebody else collected it
}

// True when it ended by itself before the limit.
bool follow(pid_t pid, int out, double timeout, const std::function<void(std::string_view)> &output) {
    const auto limit =
        Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(timeout));
    const Fd pidfd = open_pidfd(pid);
    bool more_output = true;
    while (!has_ended(pid)) {
        const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(limit - Clock::now()).count();
        if (left <= 0)
            return false;
        pollfd events[2] = {{more_output ? out : -1, POLLIN, 0}, {pidfd.get(), POLLIN, 0}};
        const long longest = pidfd ? 1000 : 20;
        ::poll(events, 2, static_cast<int>(std::min<long>(left, longest)));
        if (events[0].revents)
            more_output = forward_output(out, output);
    }
    drain(out, output);
    return true;
}

ExitStatus collect(pid_t pid) {
    int status = 0;
    pid_t result;
    do
        result = ::waitpid(pid, &status, 0);
    while (result < 0 && errno == EINTR);
    if (result != pid)
        return {ExitStatus::Kind::unknown, 0};
    if (WIFSIGNALED(status))
        return {ExitStatus::Kind::killed, WTERMSIG(status)};
    return {ExitStatus::Kind::exited, WEXITSTATUS(status)};
}

} // namespace

std::string ExitStatus::text() const {
    switch (kind) {
    case Kind::exited:
        return "exit code " + std::to_string(number);
    case Kind::killed:
        return "killed by signal " + std::to_string(number) + ", " + strsignal(number);
    case Kind::timed_out:
        return "stopped at the time limit, CK_JIT_COMPILE_TIMEOUT";
    case Kind::unknown:
        break;
    }
    return "exit code unknown: another part of this process collected it";
}

ExitStatus run(const Command &command, const std::function<void(std::string_view)> &output) {
    Pipe lifeline = make_pipe();
    Pipe printed = make_pipe();
    const ParentOnlyFd our_end(std::move(lifeline.write));
    const pid_t pid = start(command, lifeline.read.get(), printed.write.get());
    lifeline.read.reset();
    printed.write.reset();
    bool ended = false;
    {
        const RunningBuild running(pid);
        try {
            ended = follow(pid, printed.read.get(), command.timeout, output);
        } catch (...) {
            ::kill(-pid, SIGKILL);
            collect(pid);
            throw;
        }
        if (!ended)
            ::kill(-pid, SIGKILL);
    }
    const ExitStatus status = collect(pid);
    return ended ? status : ExitStatus{ExitStatus::Kind::timed_out, 0};
}

} // namespace ck_jit
