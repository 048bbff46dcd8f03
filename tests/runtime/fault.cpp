// LD_PRELOAD library: makes chosen C library calls of the driver fail, wait, or be the last thing the process
// does.
//
//   FAULT="FUNCTION:ACTION[:TEXT] ..."   TEXT: only calls whose path (the last one) contains it
//   ACTION: kill (SIGKILL before the call), after (SIGKILL after it), eio, estale, enospc, enoent, erofs,
//           wait (half a second, then the call)
//   FAULT="clock"                        the time of day jumps a day to and fro from one reading to the next
//
// Children (the compile script, the compiler) are left alone.
#include <cerrno>
#include <csignal>
#include <cstdarg>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <dlfcn.h>
#include <fcntl.h>
#include <spawn.h>
#include <string>
#include <sys/stat.h>
#include <unistd.h>

extern char *program_invocation_short_name;

namespace {

template <typename F> F *real(const char *name) { return reinterpret_cast<F *>(dlsym(RTLD_NEXT, name)); }

// The action for this call; "" for none.
std::string action_for(const std::string &function, const char *path) {
    const char *faults = getenv("FAULT");
    if (!faults || std::strncmp(program_invocation_short_name, "driver", 6) != 0)
        return "";
    std::string rest = faults;
    while (!rest.empty()) {
        const std::string fault = rest.substr(0, rest.find(' '));
        rest.erase(0, std::min(rest.size(), fault.size() + 1));
        const std::size_t colon = fault.find(':');
        if (colon == fault.npos || fault.substr(0, colon) != function)
            continue;
        const std::size_t second = fault.find(':', colon + 1);
        if (second == fault.npos || (path && std::strstr(path, fault.c_str() + second + 1)))
            return fault.substr(colon + 1, second == fault.npos ? second : second - colon - 1);
    }
    return "";
}

// True when the call must not happen; errno is set.
bool before(const std::string &action) {
    if (action == "kill")
        raise(SIGKILL);
    if (action == "wait")
        usleep(500000);
    const struct {
        const char *name;
        int error;
    } errors[] = {{"eio", EIO}, {"estale", ESTALE}, {"enospc", ENOSPC}, {"enoent", ENOENT}, {"erofs", EROFS}};
    for (const auto &error : errors)
        if (action == error.name) {
            errno = error.error;
            return true;
        }
    return false;
}

template <typename T> T after(const std::string &action, T result) {
    if (action == "after")
        raise(SIGKILL);
    return result;
}

} // namespace

extern "C" {

int renameat(int from_dir, const char *from, int to_dir, const char *to) noexcept {
    const std::string action = action_for("renameat", to);
    return before(action) ? -1
                          : after(action, real<int(int, const char *, int, const char *)>("renameat")(
                                              from_dir, from, to_dir, to));
}

int openat(int dir, const char *path, int flags, ...) {
    va_list list;
    va_start(list, flags);
    const mode_t mode = flags & O_CREAT ? va_arg(list, mode_t) : 0;
    va_end(list);
    const std::string action = action_for(flags & O_CREAT ? "create" : "openat", path);
    return before(action)
               ? -1
               : after(action, real<int(int, const char *, int, ...)>("openat")(dir, path, flags, mode));
}

int fsync(int fd) {
    const std::string action = action_for("fsync", nullptr);
    return before(action) ? -1 : after(action, real<int(int)>("fsync")(fd));
}

int flock(int fd, int how) noexcept {
    const std::string action = action_for("flock", nullptr);
    return before(action) ? -1 : after(action, real<int(int, int)>("flock")(fd, how));
}

void *dlopen(const char *path, int flags) noexcept {
    const std::string action = action_for("dlopen", path);
    return before(action) ? nullptr : after(action, real<void *(const char *, int)>("dlopen")(path, flags));
}

int posix_spawn(pid_t *pid, const char *path, const posix_spawn_file_actions_t *actions,
                const posix_spawnattr_t *attributes, char *const argv[], char *const envp[]) {
    const std::string action = action_for("posix_spawn", path);
    if (before(action))
        return errno;
    return after(action,
                 real<decltype(posix_spawn)>("posix_spawn")(pid, path, actions, attributes, argv, envp));
}

int clock_gettime(clockid_t clock, timespec *time) noexcept {
    const int result = real<int(clockid_t, timespec *)>("clock_gettime")(clock, time);
    const char *faults = getenv("FAULT");
    static int readings = 0;
    if (result == 0 && clock == CLOCK_REALTIME && faults && !std::strcmp(faults, "clock"))
        time->tv_sec += ++readings % 2 ? 86400 : -86400;
    return result;
}

} // extern "C"
