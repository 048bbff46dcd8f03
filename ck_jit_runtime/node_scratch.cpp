// SPDX-License-Identifier: MIT
#include "node_scratch.h"

#include "cache_key.h"
#include "environment.h"
#include "failure.h"
#include "lazy.h"
#include "sha256.h"

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <unistd.h>

namespace ck_jit {

namespace {

constexpr char kWorkPrefix[] = "work.";

std::string pid_namespace() {
    char target[64];
    const ssize_t length = ::readlink("/proc/self/ns/pid", target, sizeof target);
    return length > 0 ? std::string(target, static_cast<std::size_t>(length)) : "";
}

std::string make_node_name() {
    char host[256] = "";
    ::gethostname(host, sizeof host - 1);
    const std::string boot = read_file("/proc/sys/kernel/random/boot_id").value_or("");
    return sha256_hex(netstrings({host, boot, pid_namespace()})).substr(0, 12);
}

const std::string &node_name() {
    static Lazy<std::string> name;
    return name.get(make_node_name);
}

std::string make_in_scratch() {
    const PrivateDir scratch = open_private_dir(config().scratch_dir, IfMissing::create);
    remove_left_overs(scratch, kWorkPrefix);
    const std::string path = scratch.join(private_name(kWorkPrefix));
    if (::mkdir(path.c_str(), 0700) != 0)
        throw Failure(path + ": " + errno_text(errno));
    return path;
}

std::string make_in(const std::string &dir) {
    std::string path = dir + "/.ck-jit-XXXXXX";
    if (dir.empty() || !::mkdtemp(path.data()))
        throw Failure(path + ": " + errno_text(errno));
    return path;
}

} // namespace

std::string private_name(const std::string &prefix) {
    static std::atomic<unsigned> number{0};
    return prefix + node_name() + "." + std::to_string(::getpid()) + "." + std::to_string(number++);
}

bool is_left_over(const std::string &name, const std::string &prefix) {
    const std::string ours = prefix + node_name() + ".";
    if (name.compare(0, ours.size(), ours) != 0)
        return false;
    const long pid = std::strtol(name.c_str() + ours.size(), nullptr, 10);
    return pid > 0 && ::kill(static_cast<pid_t>(pid), 0) != 0 && errno == ESRCH;
}

void remove_left_overs(const PrivateDir &dir, const std::string &prefix) {
    std::error_code ignored;
    for (std::filesystem::directory_iterator it(dir.path, ignored), end; it != end; it.increment(ignored))
        if (is_left_over(it->path().filename().string(), prefix))
            std::filesystem::remove_all(it->path(), ignored);
}

std::shared_ptr<WorkDir> WorkDir::make(const std::string &last_resort) {
    std::string reasons;
    for (int attempt = 0; attempt < 3; ++attempt)
        try {
            return std::make_shared<WorkDir>(attempt == 0   ? make_in_scratch()
                                             : attempt == 1 ? make_in(config().temp_dir)
                                                            : make_in(last_resort));
        } catch (const Failure &failure) {
            reasons += (reasons.empty() ? "" : "; ") + std::string(failure.what());
        }
    throw Failure("no directory to compile in: " + reasons);
}

WorkDir::WorkDir(std::string path) : path_(std::move(path)), owner_(::getpid()) {}

WorkDir::~WorkDir() {
    std::error_code ignored;
    if (::getpid() == owner_)
        std::filesystem::remove_all(path_, ignored);
}

} // namespace ck_jit
