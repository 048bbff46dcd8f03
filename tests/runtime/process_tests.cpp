// Programs with a difficult process: what the runtime must work in. Called by test_runtime_processes.py.
//
//   process_tests fork LIB          forks while other threads compile; the child compiles too
//   process_tests sigchld LIB       SIGCHLD is ignored, so that the kernel reaps every child itself
//   process_tests reaper LIB        another thread collects every child it sees
//   process_tests two LIB OTHER     two lazy libraries, loaded locally
//   process_tests closed LIB        stdin, stdout and stderr are closed
//   process_tests descriptors LIB   leaves a descriptor open that is not close-on-exec, and a blocked,
//   ignored signal process_tests unload LIB        dlclose() after a prefetch was started
// Exit status 0 when every call returned what it should.
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <fcntl.h>
#include <string>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace {

using Call = int (*)(int, int);

void *open_library(const char *path) {
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!handle)
        _exit(2);
    return handle;
}

Call find_call(void *library) { return reinterpret_cast<Call>(dlsym(library, "toy_call")); }

bool right(Call call, int blob) { return call(blob, 1000) == 1000 + blob; }

int fork_test(const char *path) {
    const Call call = find_call(open_library(path));
    std::atomic<int> wrong{0};
    std::vector<std::thread> threads;
    for (int i = 0; i < 3; ++i)
        threads.emplace_back([&, i] { wrong += !right(call, i); });
    std::vector<pid_t> children;
    for (int i = 0; i < 8; ++i) {
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
        const pid_t child = fork();
        if (child == 0) // what the vanished threads were at work on, and one of its own
            _exit(right(call, i % 3) && right(call, 3 + i % 3) ? 0 : 1);
        children.push_back(child);
    }
    for (const pid_t child : children) {
        int status = 0;
        waitpid(child, &status, 0);
        wrong += status != 0;
    }
    for (auto &thread : threads)
        thread.join();
    return wrong;
}

int sigchld_test(const char *path) {
    signal(SIGCHLD, SIG_IGN);
    const Call call = find_call(open_library(path));
    return !right(call, 1) + !right(call, 2);
}

int reaper_test(const char *path) {
    std::atomic<bool> stop{false};
    std::thread reaper([&] {
        while (!stop) {
            waitpid(-1, nullptr, WNOHANG);
            std::this_thread::sleep_for(std::chrono::microseconds(50));
        }
    });
    const Call call = find_call(open_library(path));
    const int wrong = !right(call, 1) + !right(call, 2);
    stop = true;
    reaper.join();
    return wrong;
}

int two_test(const char *path, const char *other) {
    const Call first = find_call(open_library(path));
    const Call second = find_call(open_library(other));
    if (first == second)
        return 10;
    std::atomic<int> wrong{0};
    std::vector<std::thread> threads;
    for (const Call call : {first, second})
        for (int i = 0; i < 4; ++i)
            threads.emplace_back([&, call, i] { wrong += !right(call, i % 2); });
    for (auto &thread : threads)
        thread.join();
    return wrong;
}

int closed_test(const char *path) {
    for (int fd = 0; fd < 3; ++fd)
        close(fd);
    return !right(find_call(open_library(path)), 1);
}

int descriptors_test(const char *path) {
    if (dup2(open("/dev/null", O_RDONLY), 77) != 77)
        return 10;
    signal(SIGUSR1, SIG_IGN);
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &set, nullptr);
    return !right(find_call(open_library(path)), 1);
}

int unload_test(const char *path) {
    void *library = open_library(path);
    const char *name = "toy_1.cpp";
    const auto prefetch =
        reinterpret_cast<int (*)(const char *const *, size_t)>(dlsym(library, "ck_jit_prefetch"));
    if (prefetch(&name, 1) != 0)
        return 1;
    dlclose(library);
    std::this_thread::sleep_for(std::chrono::milliseconds(500)); // its thread goes on
    return !right(find_call(open_library(path)), 1);
}

} // namespace

int main(int, char **argv) {
    const std::string test = argv[1];
    return test == "fork"          ? fork_test(argv[2])
           : test == "sigchld"     ? sigchld_test(argv[2])
           : test == "reaper"      ? reaper_test(argv[2])
           : test == "two"         ? two_test(argv[2], argv[3])
           : test == "closed"      ? closed_test(argv[2])
           : test == "descriptors" ? descriptors_test(argv[2])
           : test == "unload"      ? unload_test(argv[2])
                                   : 99;
}
