// SPDX-License-Identifier: MIT
#include "cache.h"

#include "cache_key.h"
#include "elf_file.h"
#include "environment.h"
#include "failure.h"
#include "private_dir.h"
#include "stderr_log.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

namespace ck_jit {

namespace {

constexpr char kTempPrefix[] = ".tmp.";
constexpr std::string_view kExtension = ".so";

std::string file_name(const Request &request, const std::string &compiler_key) {
    return request.entry_name(compiler_key) + std::string(kExtension);
}

std::string key_in(const std::string &name) {
    constexpr std::size_t digits = 2 * kKeyPartDigits;
    return name.substr(name.size() - kExtension.size() - digits, digits);
}

// Names of the entries for this input by any compiler, in order.
std::vector<std::string> names_for_input(const PrivateDir &dir, const Request &request) {
    const std::string start = request.entry_name("");
    const std::size_t length = start.size() + kKeyPartDigits + kExtension.size();
    std::vector<std::string> names;
    const std::unique_ptr<DIR, int (*)(DIR *)> entries(::opendir(dir.path.c_str()), &::closedir);
    while (const dirent *entry = entries ? ::readdir(entries.get()) : nullptr) {
        const std::string name = entry->d_name;
        if (name.size() == length && name.compare(0, start.size(), start) == 0 &&
            name.compare(length - kExtension.size(), kExtension.size(), kExtension) == 0)
            names.push_back(name);
    }
    std::sort(names.begin(), names.end());
    return names;
}

// Nothing when there is no such file; throws Failure when there is one, but not a good one.
std::optional<Library> open_entry(const PrivateDir &dir, const std::string &name, const Request &request) {
    // O_NONBLOCK: it may be a fifo. O_NOFOLLOW: it may be a link to somebody's file.
    const Fd file(::openat(dir.fd.get(), name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
    if (!file && errno == ENOENT)
        return std::nullopt;
    struct stat status;
    if (!file || ::fstat(file.get(), &status) != 0)
        throw Failure(errno == ELOOP ? "it is a symbolic link" : errno_text(errno));
    if (const std::string problem = why_not_ours(status); !problem.empty())
        throw Failure("it " + problem);
    const std::optional<std::string> bytes = read_all(file.get());
    if (!bytes)
        throw Failure("it cannot be read: " + errno_text(errno));
    verify_entry(*bytes, key_in(name), request.expected);
    return Library{dir.join(name), named_functions(request, *bytes), nullptr};
}

// Keeps the latest bad file of an entry, so that somebody can look at it.
void set_aside(const PrivateDir &dir, const std::string &name, const std::string &reason) {
    log_line("set aside " + dir.join(name) + ": " + reason);
    const PrivateDir bad = open_private_subdir(dir, "bad");
    if (::renameat(dir.fd.get(), name.c_str(), bad.fd.get(), name.c_str()) != 0 &&
        ::renameat(dir.fd.get(), name.c_str(), bad.fd.get(),
                   private_name(name.substr(0, 64) + ".").c_str()) != 0)
        throw Failure(dir.join(name) + ": it is no good (" + reason +
                      ") and cannot be moved: " + errno_text(errno));
    const Fd note(::openat(bad.fd.get(), (name + ".txt").c_str(),
                           O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600));
    if (note)
        write_all(note.get(), reason + "\n");
}

std::optional<Library> open_good_entry(const PrivateDir &dir, const std::string &name, const Request &request,
                                       BadEntry bad) {
    try {
        return open_entry(dir, name, request);
    } catch (const Failure &failure) {
        if (bad == BadEntry::set_aside)
            set_aside(dir, name, failure.what());
        else
            log_verbose("passed over " + dir.join(name) + ": " + failure.what());
        return std::nullopt;
    }
}

std::optional<Library> find_any_compiler(const PrivateDir &dir, const Request &request) {
    for (const std::string &name : names_for_input(dir, request))
        if (std::optional<Library> library = open_good_entry(dir, name, request, BadEntry::ignore))
            return library;
    return std::nullopt;
}

std::optional<Library> find_in_tier(const std::string &path, const Request &request) {
    try {
        return find_any_compiler(open_private_dir(path, IfMissing::fail), request);
    } catch (const Failure &failure) {
        log_verbose(std::string("passed over a directory of CK_JIT_CACHE_PATH: ") + failure.what());
        return std::nullopt;
    }
}

void write_and_sync(const Fd &file, std::string_view object, std::string_view trailer) {
    if (!write_all(file.get(), object) || !write_all(file.get(), trailer) || ::fsync(file.get()) != 0)
        throw Failure(errno_text(errno));
}

} // namespace

std::vector<std::string> named_functions(const Request &request, std::string_view bytes) {
    if (request.blob.entry)
        return {};
    const ElfFile elf(bytes);
    return {elf.functions().begin(), elf.functions().end()};
}

std::optional<Library> find_in_tiers(const Request &request) {
    for (const std::string &path : config().tiers)
        if (std::optional<Library> library = find_in_tier(path, request))
            return library;
    return std::nullopt;
}

std::optional<Library> find_in_cache(const Request &request, const std::string &compiler_key, BadEntry bad) {
    const PrivateDir dir = open_private_dir(cache_dir(), IfMissing::create);
    if (compiler_key.empty())
        return find_any_compiler(dir, request);
    return open_good_entry(dir, file_name(request, compiler_key), request, bad);
}

void publish(const Request &request, const std::string &compiler_key, std::string_view bytes) {
    const PrivateDir dir = open_private_dir(cache_dir(), IfMissing::create);
    remove_left_overs(dir, kTempPrefix);
    const std::string temp = private_name(kTempPrefix);
    const Fd file(
        ::openat(dir.fd.get(), temp.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644));
    if (!file)
        throw Failure(dir.path + ": " + errno_text(errno));
    try {
        // The bytes must be on the disk before the name is, or a power failure leaves a name without bytes.
        write_and_sync(file, bytes, make_trailer(bytes, request.key(compiler_key)));
        if (::renameat(dir.fd.get(), temp.c_str(), dir.fd.get(), file_name(request, compiler_key).c_str()) !=
            0)
            throw Failure(errno_text(errno));
    } catch (const Failure &failure) {
        ::unlinkat(dir.fd.get(), temp.c_str(), 0);
        throw Failure(dir.path + ": " + failure.what());
    }
    ::fsync(dir.fd.get());
}

} // namespace ck_jit
