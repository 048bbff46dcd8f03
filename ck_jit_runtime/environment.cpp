// SPDX-License-Identifier: MIT
#include "environment.h"

#include "ck_jit_tables.h"
#include "lazy.h"
#include "shared_state.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <dlfcn.h>
#include <memory>
#include <sched.h>
#include <unistd.h>

namespace ck_jit {

namespace {

constexpr double kDefaultTimeout = 1800;

std::string env(const char *name) {
    const char *value = std::getenv(name);
    return value ? value : "";
}

std::string absolute(std::string path) {
    while (path.size() > 1 && path.back() == '/')
        path.pop_back(); // "link/" would hide from the checks that it is a symbolic link
    if (path.empty() || path[0] == '/')
        return path;
    const std::unique_ptr<char, decltype(&std::free)> here(::getcwd(nullptr, 0), &std::free);
    return here ? std::string(here.get()) + "/" + path : path;
}

// The directory of the library (or program) that this code is linked into.
std::string library_dir() {
    Dl_info info{};
    std::string path = "/proc/self/exe"; // dladdr gives a main program's argv[0], which may be no path at all
    if (::dladdr(reinterpret_cast<void *>(&library_dir), &info) && info.dli_fname &&
        ::access(info.dli_fname, F_OK) == 0)
        path = info.dli_fname;
    const std::unique_ptr<char, decltype(&std::free)> real(::realpath(path.c_str(), nullptr), &std::free);
    if (real)
        path = real.get();
    return path.substr(0, path.find_last_of('/'));
}

std::string root_dir() {
    std::string root = env("CK_JIT_ROOT");
    if (root.empty() && manifest().default_root)
        root = manifest().default_root;
    if (root.empty())
        root = "ck_jit";
    return root[0] == '/' ? root : library_dir() + "/" + root;
}

std::string default_cache_dir(const std::string &temp) {
    const std::string name = manifest().name && manifest().name[0] ? manifest().name : "ck_jit";
    if (const std::string chosen = env("CK_JIT_CACHE_DIR"); !chosen.empty())
        return absolute(chosen);
    if (const std::string cache = env("XDG_CACHE_HOME"); !cache.empty())
        return absolute(cache + "/" + name);
    if (const std::string home = env("HOME"); !home.empty())
        return absolute(home + "/.cache/" + name);
    return temp + "/" + name + "-" + std::to_string(::geteuid());
}

// "": below the scratch directory.
std::string lock_dir() {
    if (const std::string chosen = env("CK_JIT_LOCK_DIR"); !chosen.empty())
        return absolute(chosen);
    // It may be set and missing (su, containers), and is not ours to make.
    if (const std::string runtime = env("XDG_RUNTIME_DIR");
        !runtime.empty() && ::access(runtime.c_str(), W_OK) == 0)
        return absolute(runtime + "/ck-jit");
    return "";
}

std::vector<std::string> split_at_colons(const std::string &list) {
    std::vector<std::string> parts;
    std::size_t start = 0;
    while (start <= list.size()) {
        const std::size_t end = std::min(list.find(':', start), list.size());
        if (end > start)
            parts.push_back(absolute(list.substr(start, end - start)));
        start = end + 1;
    }
    return parts;
}

// The order of ck_jit_compile.sh. A compiler that was asked for by name is the only candidate: silently
// taking another one would fill the cache with the wrong code.
std::vector<std::string> hipcc_candidates() {
    if (const std::string chosen = env("CK_JIT_HIPCC"); !chosen.empty())
        return {absolute(chosen)};
    std::vector<std::string> paths;
    for (const char *variable : {"ROCM_PATH", "ROCM_HOME"})
        if (const std::string prefix = env(variable); !prefix.empty())
            paths.push_back(absolute(prefix + "/bin/hipcc"));
    paths.push_back("/opt/rocm/bin/hipcc");
    for (const std::string &dir : split_at_colons(env("PATH")))
        paths.push_back(dir + "/hipcc");
    return paths;
}

// A positive number of seconds; anything else means the default.
double timeout() {
    const std::string text = env("CK_JIT_COMPILE_TIMEOUT");
    const double seconds = std::strtod(text.c_str(), nullptr);
    return std::isfinite(seconds) && seconds > 0 ? std::min(seconds, 1e6) : kDefaultTimeout;
}

unsigned jobs() {
    const long chosen = std::strtol(env("CK_JIT_JOBS").c_str(), nullptr, 10);
    if (chosen > 0)
        return static_cast<unsigned>(std::min(chosen, 4096L));
    cpu_set_t cores;
    if (::sched_getaffinity(0, sizeof cores, &cores) == 0)
        return static_cast<unsigned>(std::max(CPU_COUNT(&cores), 1));
    return static_cast<unsigned>(std::max(::sysconf(_SC_NPROCESSORS_ONLN), 1L));
}

Config read_environment() {
    Config c;
    c.verbose = env("CK_JIT_VERBOSE") == "1";
    c.compile = env("CK_JIT_COMPILE") != "0";
    c.root = root_dir();
    c.script = c.root + "/ck_jit_compile.sh";
    c.temp_dir = absolute(env("TMPDIR").empty() ? "/tmp" : env("TMPDIR"));
    c.scratch_dir = c.temp_dir + "/ck-jit-" + std::to_string(::geteuid());
    c.default_cache_dir = default_cache_dir(c.temp_dir);
    c.tiers = split_at_colons(env("CK_JIT_CACHE_PATH"));
    c.lock_dir = lock_dir();
    c.arch = env("CK_JIT_ARCH");
    c.blob_manifest = absolute(env("CK_JIT_MANIFEST"));
    c.record_file = absolute(env("CK_JIT_RECORD"));
    c.hipcc_candidates = hipcc_candidates();
    c.compile_timeout = timeout();
    c.jobs = jobs();
    return c;
}

Lazy<Config> the_config;
const std::string *chosen_cache_dir = nullptr; // under StateLock

} // namespace

const Config &config() { return the_config.get(read_environment); }

std::string cache_dir() {
    const StateLock lock;
    return chosen_cache_dir ? *chosen_cache_dir : config().default_cache_dir;
}

void set_cache_dir(const std::string &path) {
    const auto *chosen = new std::string(absolute(path));
    const StateLock lock;
    delete chosen_cache_dir;
    chosen_cache_dir = chosen;
}

} // namespace ck_jit
