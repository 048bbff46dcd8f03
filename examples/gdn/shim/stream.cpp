#include "stream.hpp"

#include <map>
#include <mutex>
#include <thread>
#include <utility>

namespace atlas_gdn {
namespace {

using Handle = std::pair<cudaStream_t, std::thread::id>;

Handle handle_of(cudaStream_t stream) {
    return {stream, stream == cudaStreamPerThread ? std::this_thread::get_id() : std::thread::id{}};
}

bool ask(cudaStream_t stream, StreamIdentity *identity) {
    const RelaxedCapture relaxed;
    return cudaStreamGetDevice(stream, &identity->device) == cudaSuccess &&
           cudaStreamGetId(stream, &identity->id) == cudaSuccess;
}

} // namespace

StreamAnswer identify(cudaStream_t stream, StreamIdentity *identity) {
    // Both are leaked on purpose: a call from a destructor at exit must still find them.
    static std::mutex &lock = *new std::mutex;
    static auto &seen = *new std::map<Handle, StreamIdentity>;

    cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    if (cudaStreamIsCapturing(stream, &status) != cudaSuccess) {
        cudaGetLastError(); // reported by the answer; the caller's next launch should not find it again
        return StreamAnswer::invalid;
    }
    const bool capturing = status != cudaStreamCaptureStatusNone;
    if (!capturing && !ask(stream, identity)) {
        cudaGetLastError();
        return StreamAnswer::invalid;
    }
    const std::lock_guard<std::mutex> guard(lock);
    if (!capturing) {
        seen[handle_of(stream)] = *identity;
        return StreamAnswer::known;
    }
    const auto found = seen.find(handle_of(stream));
    if (found == seen.end())
        return StreamAnswer::capturing_and_new;
    *identity = found->second;
    identity->capturing = true;
    return StreamAnswer::known;
}

} // namespace atlas_gdn
