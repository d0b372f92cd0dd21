#include "cli/arguments/mapping_steps.hpp"

#include <charconv>
#include <map>
#include <optional>
#include <utility>

#include "reprise/error.hpp"

namespace reprise::cli {
namespace {

using driver::YamlMap;

/// Returns a step that does the same with each tensor.
template <class Work>
Step each(const Work& work) {
  return [work](std::vector<Row> rows) {
    for (Row& row : rows) {
      for (auto& tensor : row.tensors) tensor = work(tensor);
    }
    return rows;
  };
}

/// Returns the number that a group of the row's expression matched.
std::optional<std::int64_t> group_number(const Row& row, std::size_t group) {
  if (group == 0 || group > row.groups.size()) {
    throw Error(Code::kUsage, "the expression has no group " + std::to_string(group),
                {.key = row.tensors.front().key});
  }
  const std::string& text = row.groups[group - 1];
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return number;
}

/// Makes a tensor of each index along `dim`. Where group `unless` matched a number, the tensor is
/// one of these already; 0 is no group.
std::vector<Row> unstacked(const std::vector<Row>& rows, std::size_t dim, std::size_t unless) {
  std::vector<Row> result;
  for (const Row& row : rows) {
    if (const auto number = unless == 0 ? std::nullopt : group_number(row, unless)) {
      result.push_back(row);
      result.back().numbers.push_back(*number);
      continue;
    }
    const auto& first = row.tensors.front();
    const std::int64_t count = dim < first.shape.size() ? first.shape[dim] : 1;
    if (count == 0) {
      throw Error(Code::kUsage,
                  "dimension " + std::to_string(dim) + " has no index of which to make a tensor",
                  {.key = first.key});
    }
    for (std::int64_t i = 0; i < count; ++i) {
      Row one{row.groups, row.numbers, {}, {}};
      one.numbers.push_back(i);
      for (const auto& tensor : row.tensors) {
        one.tensors.push_back(without_dim(narrowed(tensor, dim, {i, i + 1}), dim));
      }
      result.push_back(std::move(one));
    }
  }
  return result;
}

/// Stacks rows that differ in group `by` alone, in the order of the numbers that it matched.
std::vector<Row> stacked(const std::vector<Row>& rows, std::size_t dim, std::size_t by) {
  using Others = std::pair<std::vector<std::string>, std::vector<std::int64_t>>;
  std::map<Others, std::map<std::int64_t, const Row*>> stacks;
  for (const Row& row : rows) {
    const std::string& key = row.tensors.front().key;
    const auto number = group_number(row, by);
    if (!number) {
      throw Error(Code::kUsage,
                  "group " + std::to_string(by) + " matched '" + row.groups[by - 1] +
                      "', which is no number to stack by",
                  {.key = key});
    }
    std::vector<std::string> others = row.groups;
    others[by - 1].clear();
    if (!stacks[{others, row.numbers}].emplace(*number, &row).second) {
      throw Error(Code::kUsage,
                  "two tensors have number " + std::to_string(*number) + " in a stack",
                  {.key = key});
    }
  }
  std::vector<Row> result;
  for (const auto& [others, stack] : stacks) {
    const Row& first = *stack.begin()->second;
    if (stack.begin()->first != 0 ||
        stack.rbegin()->first != static_cast<std::int64_t>(stack.size()) - 1) {
      throw Error(Code::kUsage,
                  "the numbers to stack by are not 0 to " + std::to_string(stack.size() - 1),
                  {.key = first.tensors.front().key});
    }
    Row row{others.first, first.numbers, {}, {}};
    for (std::size_t t = 0; t < first.tensors.size(); ++t) {
      std::vector<MappedTensor> layers;
      for (const auto& [number, one] : stack) layers.push_back(with_dim(one->tensors[t], dim));
      row.tensors.push_back(joined(layers, dim));
    }
    result.push_back(std::move(row));
  }
  return result;
}

std::size_t dim_of(YamlMap& step, std::string_view key) {
  const auto last = static_cast<std::int64_t>(kMaxNdim) - 1;
  return static_cast<std::size_t>(step.needed(key, step.integer_in(key, 0, last)));
}

constexpr std::int64_t kCountMax = std::int64_t{1} << 40U;

Step read_split(YamlMap split) {
  const std::size_t dim = dim_of(split, "dim");
  const std::int64_t blocks = split.integer_in("blocks", 1, kCountMax).value_or(1);
  const auto shares = split.integers("shares");
  if (shares.empty()) split.required("shares");
  split.refuse_unknown();
  return [dim, blocks, shares](std::vector<Row> rows) {
    for (Row& row : rows) {
      std::vector<MappedTensor> parts;
      for (const auto& tensor : row.tensors) {
        for (auto& part : reprise::split(tensor, dim, blocks, shares))
          parts.push_back(std::move(part));
      }
      row.tensors = std::move(parts);
    }
    return rows;
  };
}

Step read_join(YamlMap join) {
  const std::size_t dim = dim_of(join, "dim");
  const std::int64_t blocks = join.integer_in("blocks", 1, kCountMax).value_or(1);
  join.refuse_unknown();
  return [dim, blocks](std::vector<Row> rows) {
    for (Row& row : rows) row.tensors = {interleaved(row.tensors, dim, blocks)};
    return rows;
  };
}

Step read_stack(YamlMap stack) {
  const std::size_t dim = dim_of(stack, "dim");
  const auto by = static_cast<std::size_t>(stack.integer_in("by", 1, 9).value_or(1));
  stack.refuse_unknown();
  return [dim, by](const std::vector<Row>& rows) { return stacked(rows, dim, by); };
}

/// Reads `narrow` or `pad`: a dimension, and its new size.
template <class Work>
Step read_size(YamlMap sizes, const Work& work) {
  const std::size_t dim = dim_of(sizes, "dim");
  const std::int64_t size = sizes.needed("size", sizes.integer_in("size", 0, kCountMax));
  sizes.refuse_unknown();
  return each([dim, size, work](const MappedTensor& tensor) { return work(tensor, dim, size); });
}

Step read_cast(YamlMap& step) {
  const std::string name = step.required("cast");
  const auto dtype = dtype_named(name);
  if (!dtype) step.fail(step.node("cast"), "has the unknown type " + name);
  return each([dtype](MappedTensor tensor) {
    tensor.dtype = *dtype;
    return tensor;
  });
}

}  // namespace

Step read_step(YamlMap step) {
  const auto read = [&]() -> Step {
    if (step.has("unstack")) {
      const std::size_t dim = dim_of(step, "unstack");
      const auto unless = static_cast<std::size_t>(step.integer_in("unless", 1, 9).value_or(0));
      return [dim, unless](const std::vector<Row>& rows) { return unstacked(rows, dim, unless); };
    }
    if (step.has("split")) return read_split(step.map("split"));
    if (step.has("join")) return read_join(step.map("join"));
    if (step.has("stack")) return read_stack(step.map("stack"));
    if (step.has("transpose")) {
      const auto order = step.integers("transpose");
      if (order.size() > kMaxNdim) step.fail(step.node("transpose"), "has too many dimensions");
      return each([order](const MappedTensor& tensor) { return transposed(tensor, Dims(order)); });
    }
    if (step.has("narrow")) {
      return read_size(step.map("narrow"), [](const auto& tensor, std::size_t dim, auto size) {
        return narrowed(tensor, dim, {0, size});
      });
    }
    if (step.has("pad")) {
      return read_size(step.map("pad"), [](const auto& tensor, std::size_t dim, auto size) {
        return padded(tensor, dim, size);
      });
    }
    if (step.has("cast")) return read_cast(step);
    for (const auto* known :
         {"unstack", "split", "join", "stack", "transpose", "narrow", "pad", "cast"}) {
      step.know(known);
    }
    step.refuse_unknown();
    step.required("unstack, split, join, stack, transpose, narrow, pad or cast");
    return {};
  };
  Step result = read();
  step.refuse_unknown();
  return result;
}

}  // namespace reprise::cli
