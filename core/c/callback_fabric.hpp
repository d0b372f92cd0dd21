#pragma once
// A fabric whose ranks reach each other by one callback of the program.

#include <optional>
#include <vector>

#include "reprise/c.h"
#include "reprise/error.hpp"
#include "reprise/fabric.hpp"

/// Collects what a callback hands over.
struct rp_gathered {
  std::vector<std::optional<reprise::Bytes>> parts;  ///< by place in the group
  std::optional<reprise::Error> failure;
};

namespace reprise::c {

/// Its communicators make every operation of one gathering.
class CallbackFabric final : public Fabric {
 public:
  /// Throws USAGE for options that make no sense. `options.context` must outlive the fabric.
  explicit CallbackFabric(const rp_job_options& options);

  GlobalRank rank() const override { return {options_.rank}; }
  std::int32_t world_size() const override { return options_.size; }
  std::shared_ptr<Communicator> communicator(const Group& group) override;

 private:
  rp_job_options options_;
};

}  // namespace reprise::c
