// SPDX-License-Identifier: MIT
#include "compiler_id.h"

#include "cache_key.h"
#include "environment.h"
#include "failure.h"
#include "file_lock.h"
#include "lazy.h"
#include "node_scratch.h"
#include "private_dir.h"
#include "run_command.h"
#include "sha256.h"
#include "stderr_log.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <memory>
#include <sys/stat.h>
#include <unistd.h>
#include <vector>

namespace ck_jit {

namespace {

namespace fs = std::filesystem;

constexpr double kVersionTimeout = 120;
constexpr std::size_t kVersionBytes = 65536;

std::string real_path(const std::string &path) {
    const std::unique_ptr<char, decltype(&std::free)> real(::realpath(path.c_str(), nullptr), &std::free);
    return real ? real.get() : "";
}

std::string find_hipcc() {
    std::string looked_at;
    for (const std::string &path : config().hipcc_candidates) {
        struct stat status;
        if (::stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode) &&
            ::access(path.c_str(), X_OK) == 0)
            return path;
        looked_at += (looked_at.empty() ? "" : ", ") + path;
    }
    throw Failure("no hipcc found (looked at " + looked_at + "); set CK_JIT_HIPCC or ROCM_PATH");
}

// "" when it does not run. What it prints to stderr counts too.
std::string version_text(const std::string &hipcc) {
    std::string text;
    const ExitStatus status =
        run({{hipcc, "--version"}, {"LC_ALL=C"}, "/", kVersionTimeout}, [&](std::string_view piece) {
            text.append(piece.substr(0, kVersionBytes - std::min(kVersionBytes, text.size())));
        });
    if (!status.may_be_good())
        throw Failure(hipcc + " --version: " + status.text());
    return text;
}

// hipcc is a script or a small program that starts clang, whose place it prints.
std::string clang_path(const std::string &version) {
    constexpr std::string_view label = "InstalledDir: ";
    const std::size_t start = version.find(label);
    if (start == version.npos)
        return "";
    const std::size_t end = std::min(version.find('\n', start), version.size());
    return real_path(version.substr(start + label.size(), end - start - label.size()) + "/clang");
}

// The directory of the GPU bitcode libraries that this hipcc links into device code; "" when none is found.
std::string device_lib_dir(const std::string &hipcc) {
    const fs::path prefix = fs::path(hipcc).parent_path().parent_path();
    const fs::path real_prefix = fs::path(real_path(hipcc)).parent_path().parent_path();
    const char *chosen = std::getenv("HIP_DEVICE_LIB_PATH");
    std::error_code ignored;
    for (const fs::path &dir :
         {fs::path(chosen ? chosen : ""), prefix / "amdgcn/bitcode", real_prefix / "amdgcn/bitcode"})
        if (!dir.empty() && fs::is_directory(dir, ignored))
            return dir.string();
    return "";
}

std::vector<std::string> device_libs(const std::string &dir) {
    std::vector<std::string> files;
    std::error_code ignored;
    for (fs::directory_iterator it(dir, ignored), end; !dir.empty() && it != end; it.increment(ignored))
        if (it->path().extension() == ".bc")
            files.push_back(it->path().string());
    std::sort(files.begin(), files.end());
    return files;
}

std::string file_hash(const std::string &path) {
    const std::optional<std::string> bytes = read_file(path);
    return bytes ? sha256_hex(*bytes) : "";
}

// "<size> <mtime in ns> <inode> <path>": changes when the file is replaced or rewritten.
std::string stamp(const std::string &path) {
    struct stat status{};
    ::stat(path.c_str(), &status);
    const long long mtime = status.st_mtim.tv_sec * 1000000000LL + status.st_mtim.tv_nsec;
    return std::to_string(status.st_size) + " " + std::to_string(mtime) + " " +
           std::to_string(status.st_ino) + " " + path;
}

struct Identity {
    std::string hash;
    std::vector<std::string> files; // what it depends on
};

Identity work_out_identity(const std::string &hipcc) {
    const std::string real = real_path(hipcc);
    const std::string version = version_text(hipcc);
    const std::string clang = clang_path(version);
    std::string text = netstrings({"ck-jit-compiler-identity-1", real, file_hash(real), version,
                                   clang.empty() ? "" : file_hash(clang)});
    Identity identity{"", {real, clang}};
    for (const std::string &library : device_libs(device_lib_dir(hipcc))) {
        text += netstrings({fs::path(library).filename().string(), file_hash(library)});
        identity.files.push_back(library);
    }
    identity.hash = sha256_hex(text);
    return identity;
}

std::vector<std::string> split_at_zeros(const std::string &text) {
    std::vector<std::string> lines;
    for (std::size_t start = 0, end; (end = text.find('\0', start)) != text.npos; start = end + 1)
        lines.push_back(text.substr(start, end - start));
    return lines;
}

std::string join_with_zeros(const std::vector<std::string> &lines) {
    std::string text;
    for (const std::string &line : lines)
        text += line + '\0';
    return text;
}

// What is remembered: the hash, then a stamp for each file. Closed by zero bytes, because paths may contain
// newlines.
std::vector<std::string> memory_lines(const Identity &identity) {
    std::vector<std::string> lines{identity.hash};
    for (const std::string &file : identity.files)
        lines.push_back(stamp(file));
    lines.push_back("end");
    return lines;
}

std::string path_in_stamp(const std::string &text) {
    std::size_t path = 0;
    for (int field = 0; field < 3; ++field)
        path = text.find(' ', path) + 1;
    return text.substr(path);
}

// "" when nothing is remembered, or something changed since.
std::string recall(const PrivateDir &dir, const std::string &name, const std::string &hipcc) {
    const Fd file(::openat(dir.fd.get(), name.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK));
    struct stat status;
    if (!file || ::fstat(file.get(), &status) != 0 || !why_not_ours(status).empty())
        return "";
    const std::vector<std::string> lines = split_at_zeros(read_all(file.get()).value_or(""));
    if (lines.size() < 4)
        return "";
    Identity now{lines[0],
                 {real_path(hipcc), path_in_stamp(lines[2])}}; // only clang's place is not known without it
    for (std::string &library : device_libs(device_lib_dir(hipcc)))
        now.files.push_back(std::move(library));
    return memory_lines(now) == lines ? lines[0] : "";
}

void remember(const PrivateDir &dir, const std::string &name, const Identity &identity) {
    const std::string temp = private_name(".tmp.");
    const Fd file(::openat(dir.fd.get(), temp.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    if (!file)
        return;
    if (!write_all(file.get(), join_with_zeros(memory_lines(identity))) ||
        ::renameat(dir.fd.get(), temp.c_str(), dir.fd.get(), name.c_str()) != 0)
        ::unlinkat(dir.fd.get(), temp.c_str(), 0);
}

std::string identity_of(const std::string &hipcc) {
    const std::string name = sha256_hex(stamp(real_path(hipcc))).substr(0, kKeyPartDigits);
    FileLock lock("compiler." + name); // one process works it out, the others read it
    lock.done();
    std::optional<PrivateDir> dir;
    try {
        dir = open_private_subdir(open_private_dir(cache_dir(), IfMissing::create), "compiler");
        if (const std::string known = recall(*dir, name, hipcc); !known.empty())
            return known;
    } catch (const Failure &failure) {
        log_verbose(std::string("cannot remember the compiler's identity: ") + failure.what());
    }
    const Identity identity = work_out_identity(hipcc);
    if (dir)
        remember(*dir, name, identity);
    return identity.hash;
}

Compiler find_compiler() {
    const std::string hipcc = find_hipcc();
    return {hipcc, compiler_key(identity_of(hipcc), file_hash(config().script))};
}

Lazy<Compiler> the_compiler;

} // namespace

const Compiler &compiler() { return the_compiler.get(find_compiler); }

} // namespace ck_jit
