#pragma once
// Defines the objects behind the handles of the C interface.

#include <unistd.h>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "core/c/structs.hpp"
#include "core/c/texts.hpp"
#include "reprise/c.h"
#include "reprise/job.hpp"
#include "reprise/load.hpp"
#include "reprise/save.hpp"
#include "reprise/state.hpp"

namespace reprise::c {

/// A fork copies a handle's memory, but neither the threads nor the locks that belong to it.
struct OwnedByProcess {
  pid_t process = getpid();

  bool is_own() const { return process == getpid(); }
};

/// A text list of a result stays where it is as long as its handle.
struct KeptSave {
  SaveResult result;
  Texts log;
  std::vector<rp_unequal_copy> unequal;
};

/// Says how a job makes the devices that it is asked to use.
struct DeviceChoice {
  std::string cuda_file;  ///< empty: the one beside this library
  std::chrono::nanoseconds deadline;
};

}  // namespace reprise::c

struct rp_job : reprise::c::OwnedByProcess {
  rp_job(reprise::Job opened, reprise::c::DeviceChoice choice)
      : job(std::move(opened)), devices(std::move(choice)) {}
  reprise::Job job;
  reprise::c::DeviceChoice devices;
};

struct rp_state : reprise::c::OwnedByProcess {
  reprise::State state;
};

struct rp_save : reprise::c::OwnedByProcess {
  explicit rp_save(std::optional<reprise::SaveInFlight> begun) : save(std::move(begun)) {}
  std::optional<reprise::SaveInFlight> save;  ///< empty if it ended before it had a handle
  std::optional<reprise::c::KeptSave> ended;  ///< once its result is known
};

struct rp_load : reprise::c::OwnedByProcess {
  std::string directory;
  reprise::c::Texts not_stored, not_requested, excused, fell_back_from, log;
  std::vector<std::int64_t> damaged;
};

namespace reprise::c {

/// Returns what a handle stands for. Throws USAGE if there is none, or if a parent process made it.
template <class Handle>
Handle& own(Handle* handle, const char* what) {
  require(handle, what);
  if (handle->is_own()) return *handle;
  refuse(Code::kUsage, std::string(what) + ": process " + std::to_string(handle->process) +
                           " made this handle, and a forked process can't use it; open a " +
                           "job of its own here");
}

/// Frees a handle, unless a parent process made it.
template <class Handle>
void free_own(Handle* handle) {
  if (handle != nullptr && handle->is_own()) delete handle;
}

}  // namespace reprise::c
