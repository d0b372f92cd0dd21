#include "driver/trace/slice_tracks.hpp"

namespace reprise::driver {
namespace {

/// A track that is being filled, with the slices that have not ended yet.
struct OpenTrack {
  SliceTrack track;
  bool background = false;
  std::size_t fiber = 0;  ///< the fiber of the last slice
  std::vector<const sim::Slice*> open = {};

  bool has_room_for(const sim::Slice& slice) {
    while (!open.empty() && open.back()->end_ns <= slice.begin_ns) open.pop_back();
    return open.empty() || (fiber == slice.fiber && open.back()->end_ns >= slice.end_ns);
  }
};

bool is_background(const sim::Slice& slice) {
  return slice.fiber != static_cast<std::size_t>(slice.rank.value);
}

/// Returns a track with room for the slice: the one that its fiber used last, if possible.
OpenTrack* find_track(std::vector<OpenTrack>& tracks, const sim::Slice& slice) {
  OpenTrack* found = nullptr;
  for (auto& one : tracks) {
    if (one.background != is_background(slice) || !one.has_room_for(slice)) continue;
    if (one.fiber == slice.fiber) return &one;
    if (found == nullptr) found = &one;
  }
  return found;
}

std::string suffix_of(bool background, std::size_t number) {
  if (background) return ", background " + std::to_string(number);
  return ", overlapping" + (number > 2 ? " " + std::to_string(number - 1) : "");
}

}  // namespace

std::vector<SliceTrack> tracks_of(std::span<const sim::Slice* const> slices) {
  std::vector<OpenTrack> tracks(1);
  std::size_t own = 1;
  std::size_t background = 0;
  for (const sim::Slice* slice : slices) {
    OpenTrack* track = find_track(tracks, *slice);
    if (track == nullptr) {
      const bool behind = is_background(*slice);
      const std::size_t number = behind ? ++background : ++own;
      track = &tracks.emplace_back(
          OpenTrack{.track = {suffix_of(behind, number), {}}, .background = behind});
    }
    track->fiber = slice->fiber;
    track->track.slices.push_back(slice);
    track->open.push_back(slice);
  }
  std::vector<SliceTrack> result;
  for (auto& one : tracks) result.push_back(std::move(one.track));
  return result;
}

}  // namespace reprise::driver
