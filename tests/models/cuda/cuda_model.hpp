#pragma once
// A model of CUDA's runtime over host memory, for tests of the adapter on machines without a GPU.
// It is stricter than hardware about order, and says nothing about speed. docs/gpu.md has its
// rules.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace reprise::models {

/// When queued work runs. All three are legal on hardware.
enum class Schedule : std::uint8_t {
  kEager,   ///< as soon as it is queued
  kLatest,  ///< only if a call waits for it, and then only what that call needs
  kRandom,  ///< some of it at each call, drawn by a seed
};
/// Returns the schedule with that name: eager, latest or random. Throws USAGE otherwise.
Schedule schedule_named(const std::string& name);

struct Settings {
  Schedule schedule = Schedule::kLatest;
  std::uint64_t seed = 1;
  int devices = 1;
  int driver = 13'000;  ///< version of CUDA that the driver is of; 0 if there is none
  std::size_t memory_bytes = std::size_t{1} << 32U;  ///< of each device
  bool has_code = true;  ///< false if the program's kernels were compiled for other devices
  /// Number of the call that fails, counted from 1; 0 for none. Allocations fail with
  /// cudaErrorMemoryAllocation, other calls with cudaErrorUnknown.
  std::uint64_t failing_call = 0;
  /// True if every later call of the same process fails, too, as after a faulty kernel.
  bool sticky = false;
  /// The devices that each process sees, in its order; by process. A process beyond the list sees
  /// all devices.
  std::vector<std::vector<int>> visible = {};
};

/// Tells the model who calls it, if ranks are fibers of one thread. Without it, each thread is a
/// caller of its own, and all are one process.
struct Callers {
  std::function<int()> process;  ///< number of the running process, from 0
  std::function<std::uint64_t()> thread;
  std::function<bool()> is_dead;  ///< true if the running process was killed; it calls nothing more
  std::function<void()> pause;    ///< lets the others run for a while
};
/// Stays until it is set again. Empty functions mean one process.
void set_callers(Callers callers);

/// Begins anew, with these settings and nothing queued. Streams, events and memory that are left
/// are no longer valid.
void reset(const Settings& settings);

/// Returns what reset() was given.
Settings settings();

/// Lets one call fail: the next one if `ahead` is 1.
void let_fail(std::uint64_t ahead);

/// Lets the next allocation of memory of a device fail, as if there were no room.
void let_device_memory_run_out();

/// Returns how many calls that can fail were made since reset().
std::uint64_t calls();

/// Returns how often the calling thread, or any other one, called each function since reset(),
/// those that can't fail too. Functions of this model that several of CUDA's share, as `allocate`,
/// have an entry of their own.
enum class CalledBy : std::uint8_t { kThisThread, kOthers };
std::map<std::string, std::uint64_t> calls_by_name(CalledBy threads);

/// Returns what programs must not do and what this one did since reset(), one sentence each.
std::vector<std::string> faults();

/// Returns how many streams, events and allocations there are.
std::size_t live_objects();

/// Returns how many allocations were made while the device was current. Pinned ones count, too:
/// they make CUDA keep a context on that device.
std::size_t allocations_on(int device);

/// Queues work on a stream (a cudaStream_t) that does not end before let_go(), as a kernel that
/// waits for a rank that has died. A call that waits for it without end is a fault.
void block(void* stream);
void let_go();

/// Copies that a copy engine makes (cudaMemcpyAsync) and that have not run yet, or are queued
/// later, don't run before let_go(), as if the engine were slow.
void hold_copies();

/// Begins the capture of a CUDA graph with a stream, in mode "global". Calls that may wait for the
/// device, on any thread that has not chosen another mode, are refused and end it. Work that is
/// queued on the stream becomes part of the graph and does not run.
void begin_capture(void* stream);
/// Ends it. Returns false if a call has ended it before.
bool end_capture(void* stream);

/// Returns the devices on which the calling process has a context: those that were current when a
/// call needed one.
std::set<int> contexts();

/// Returns how many calls allocated or freed memory since reset(), of devices and pinned.
std::uint64_t memory_calls();

}  // namespace reprise::models
