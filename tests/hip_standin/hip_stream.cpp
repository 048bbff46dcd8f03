// Streams, events and host functions.
#include "device.h"
#include "hip_api.h"
#include "stream.h"

#include <chrono>
#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>

using hip_standin::find_stream;
using hip_standin::hip_call;
using hip_standin::RunOn;
using hip_standin::StreamPoint;
using hip_standin::StreamRef;

namespace {

double now_ms() {
    const auto now = std::chrono::steady_clock::now().time_since_epoch();
    return std::chrono::duration<double, std::milli>(now).count();
}

struct Event {
    bool has_time = true;
    bool recorded = false;
    StreamPoint point;
    std::shared_ptr<double> time_ms; // written by the stream when it gets there
};

struct Events {
    std::mutex mutex;
    std::map<hipEvent_t, Event> by_handle;
};

// Never destroyed, as all that other libraries' destructors may still call.
Events &events() {
    static Events &instance = *new Events;
    return instance;
}

bool find_event(hipEvent_t handle, Event &copy) {
    const std::lock_guard<std::mutex> lock(events().mutex);
    const auto found = events().by_handle.find(handle);
    if (found == events().by_handle.end())
        return false;
    copy = found->second;
    return true;
}

hipError_t create_event(hipEvent_t *handle, unsigned flags) {
    if (!handle)
        return hipErrorInvalidValue;
    // The address makes the handle unique; nothing reads what is behind it.
    *handle = reinterpret_cast<hipEvent_t>(new char);
    Event event;
    event.has_time = !(flags & hipEventDisableTiming);
    const std::lock_guard<std::mutex> lock(events().mutex);
    events().by_handle[*handle] = event;
    return hipSuccess;
}

hipError_t record_event(hipEvent_t handle, hipStream_t stream_handle) {
    Event event;
    const StreamRef stream = find_stream(stream_handle);
    if (!stream || !find_event(handle, event))
        return hipErrorInvalidHandle;
    auto time = std::make_shared<double>(0);
    const StreamPoint point = submit(stream, RunOn::caller_if_idle, [time] { *time = now_ms(); });
    const std::lock_guard<std::mutex> lock(events().mutex);
    const auto found = events().by_handle.find(handle);
    if (found == events().by_handle.end())
        return hipErrorInvalidHandle;
    found->second.recorded = true;
    found->second.point = point;
    found->second.time_ms = time;
    return hipSuccess;
}

hipError_t create_stream_with(hipStream_t *handle, unsigned flags) {
    if (!handle || (flags != hipStreamDefault && flags != hipStreamNonBlocking))
        return hipErrorInvalidValue;
    if (!hip_standin::device_count())
        return hipErrorNoDevice;
    const auto stream = hip_standin::create_stream(hip_standin::current_device(), flags == hipStreamDefault);
    *handle = static_cast<hipStream_t>(hip_standin::handle_of(stream));
    return hipSuccess;
}

} // namespace

extern "C" {

hipError_t hipStreamCreate(hipStream_t *stream) {
    return hip_call("hipStreamCreate", [&] { return create_stream_with(stream, hipStreamDefault); });
}

hipError_t hipStreamCreateWithFlags(hipStream_t *stream, unsigned flags) {
    return hip_call("hipStreamCreateWithFlags", [&] { return create_stream_with(stream, flags); });
}

hipError_t hipStreamCreateWithPriority(hipStream_t *stream, unsigned flags, int) {
    return hip_call("hipStreamCreateWithPriority", [&] { return create_stream_with(stream, flags); });
}

hipError_t hipStreamDestroy(hipStream_t stream) {
    return hip_call("hipStreamDestroy",
                    [&] { return hip_standin::destroy_stream(stream) ? hipSuccess : hipErrorInvalidHandle; });
}

hipError_t hipStreamSynchronize(hipStream_t handle) {
    return hip_call("hipStreamSynchronize", [&] {
        const StreamRef stream = find_stream(handle);
        if (!stream)
            return hipErrorInvalidHandle;
        // The null stream's own order makes it wait for the others.
        wait_for(hip_standin::stream_number(stream) ? last_point(stream)
                                                    : submit(stream, RunOn::caller_if_idle, [] {}));
        return hipSuccess;
    });
}

hipError_t hipStreamQuery(hipStream_t handle) {
    return hip_call("hipStreamQuery", [&] {
        const StreamRef stream = find_stream(handle);
        if (!stream)
            return hipErrorInvalidHandle;
        return is_done(last_point(stream)) ? hipSuccess : hipErrorNotReady;
    });
}

hipError_t hipStreamWaitEvent(hipStream_t handle, hipEvent_t event_handle, unsigned) {
    return hip_call("hipStreamWaitEvent", [&] {
        const StreamRef stream = find_stream(handle);
        Event event;
        if (!stream || !find_event(event_handle, event))
            return hipErrorInvalidHandle;
        if (event.recorded)
            submit(stream, RunOn::caller_if_idle, [] {}, {event.point});
        return hipSuccess;
    });
}

hipError_t hipStreamGetDevice(hipStream_t handle, hipDevice_t *device) {
    return hip_call("hipStreamGetDevice", [&] {
        const StreamRef stream = find_stream(handle);
        if (!stream)
            return hipErrorInvalidHandle;
        if (!device)
            return hipErrorInvalidValue;
        *device = hip_standin::stream_device(stream);
        return hipSuccess;
    });
}

hipError_t hipStreamIsCapturing(hipStream_t handle, hipStreamCaptureStatus *status) {
    return hip_call("hipStreamIsCapturing", [&] {
        if (!status)
            return hipErrorInvalidValue;
        if (!find_stream(handle))
            return hipErrorInvalidHandle;
        *status = hipStreamCaptureStatusNone;
        return hipSuccess;
    });
}

// Every compute unit may be used.
hipError_t hipExtStreamGetCUMask(hipStream_t handle, uint32_t words, uint32_t *mask) {
    return hip_call("hipExtStreamGetCUMask", [&] {
        if (!mask || words == 0)
            return hipErrorInvalidValue;
        const StreamRef stream = find_stream(handle);
        if (!stream)
            return hipErrorInvalidHandle;
        auto left =
            static_cast<uint32_t>(hip_standin::device(hip_standin::stream_device(stream)).compute_units);
        for (uint32_t i = 0; i < words; ++i) {
            const uint32_t here = left < 32 ? left : 32;
            mask[i] = here == 32 ? ~uint32_t{0} : (uint32_t{1} << here) - 1;
            left -= here;
        }
        return hipSuccess;
    });
}

hipError_t hipLaunchHostFunc(hipStream_t handle, hipHostFn_t function, void *data) {
    return hip_call("hipLaunchHostFunc", [&] {
        if (!function)
            return hipErrorInvalidValue;
        const StreamRef stream = find_stream(handle);
        if (!stream)
            return hipErrorInvalidHandle;
        submit(stream, RunOn::worker, [=] { function(data); });
        return hipSuccess;
    });
}

hipError_t hipStreamAddCallback(hipStream_t handle, hipStreamCallback_t callback, void *data,
                                unsigned flags) {
    return hip_call("hipStreamAddCallback", [&] {
        if (!callback || flags != 0)
            return hipErrorInvalidValue;
        const StreamRef stream = find_stream(handle);
        if (!stream)
            return hipErrorInvalidHandle;
        submit(stream, RunOn::worker, [=] { callback(handle, hipSuccess, data); });
        return hipSuccess;
    });
}

hipError_t hipEventCreate(hipEvent_t *event) {
    return hip_call("hipEventCreate", [&] { return create_event(event, hipEventDefault); });
}

hipError_t hipEventCreateWithFlags(hipEvent_t *event, unsigned flags) {
    return hip_call("hipEventCreateWithFlags", [&] { return create_event(event, flags); });
}

hipError_t hipEventDestroy(hipEvent_t event) {
    return hip_call("hipEventDestroy", [&] {
        const std::lock_guard<std::mutex> lock(events().mutex);
        if (events().by_handle.erase(event) == 0)
            return hipErrorInvalidHandle;
        delete reinterpret_cast<char *>(event);
        return hipSuccess;
    });
}

hipError_t hipEventRecord(hipEvent_t event, hipStream_t stream) {
    return hip_call("hipEventRecord", [&] { return record_event(event, stream); });
}

hipError_t hipEventRecordWithFlags(hipEvent_t event, hipStream_t stream, unsigned) {
    return hip_call("hipEventRecordWithFlags", [&] { return record_event(event, stream); });
}

hipError_t hipEventSynchronize(hipEvent_t handle) {
    return hip_call("hipEventSynchronize", [&] {
        Event event;
        if (!find_event(handle, event))
            return hipErrorInvalidHandle;
        if (event.recorded)
            wait_for(event.point);
        return hipSuccess;
    });
}

hipError_t hipEventQuery(hipEvent_t handle) {
    return hip_call("hipEventQuery", [&] {
        Event event;
        if (!find_event(handle, event))
            return hipErrorInvalidHandle;
        return !event.recorded || is_done(event.point) ? hipSuccess : hipErrorNotReady;
    });
}

hipError_t hipEventElapsedTime(float *milliseconds, hipEvent_t start_handle, hipEvent_t stop_handle) {
    return hip_call("hipEventElapsedTime", [&] {
        if (!milliseconds)
            return hipErrorInvalidValue;
        Event start;
        Event stop;
        if (!find_event(start_handle, start) || !find_event(stop_handle, stop))
            return hipErrorInvalidHandle;
        if (!start.recorded || !stop.recorded || !start.has_time || !stop.has_time)
            return hipErrorInvalidHandle;
        if (!is_done(start.point) || !is_done(stop.point))
            return hipErrorNotReady;
        const char *fixed = std::getenv("HIP_STANDIN_EVENT_MS");
        *milliseconds =
            fixed ? std::strtof(fixed, nullptr) : static_cast<float>(*stop.time_ms - *start.time_ms);
        return hipSuccess;
    });
}
}
