#include "movers/bind_texts.hpp"

namespace longshore {

namespace {

std::string type_of(const Reduction& reduction) {
  return reduction.op() == ReduceOp::user ? "elements of " + std::to_string(reduction.element_bytes()) + " bytes"
                                          : std::string(element_name(reduction.type()));
}

template <class Axes>
std::string words_of(const Axes& axes) {
  std::string text;
  for (const auto axis : axes) text += (text.empty() ? ", axes " : " ") + std::to_string(axis);
  return text;
}

}  // namespace

std::string describe_blocks(const BlockPlan& plan, const XArray& source, const XArray& destination,
                            const BlockOptions& options, std::uint64_t digest, const std::string& element) {
  auto array = [](const XArray& of) {
    return "elements of " + std::to_string(of.element_bytes()) + " bytes, ghost cells " +
           of.format().ghost.to_string() + (of.format().order == Order::C ? ", order C" : ", order F");
  };
  std::string text = array(source) + " from " + plan.source().to_string(2);
  text += source.same_storage(destination) ? ", to themselves"
                                           : " to " + array(destination) + " on " + plan.destination().to_string(2);
  if (!element.empty()) text += " (" + element + ")";
  text += words_of(plan.axes());
  if (!options.reduction.is_replace())
    text += ", " + std::string(reduce_name(options.reduction.op())) + " of " + type_of(options.reduction);
  if (options.visit == Order::C) text += ", visited in order C";
  if (options.checked) text += ", checked";
  return text + ", digest of the plan " + std::to_string(digest);
}

std::string describe_layouts(const MotionPlan& plan, const Combine& combine, const std::string& element) {
  auto shape = [](const Layout& layout) {
    std::string text;
    for (const Index n : layout.shape()) text += (text.empty() ? "" : "x") + std::to_string(n);
    return text;
  };
  std::string text = shape(plan.source()) + " elements of " + std::to_string(plan.element_bytes()) + " bytes";
  if (!element.empty()) text += " (" + element + ")";
  text += " from " + plan.source().to_string() + " to " + plan.destination().to_string();
  bool permuted = false;
  for (std::size_t d = 0; d < plan.axes().size(); ++d) permuted |= plan.axes()[d] != d;
  if (permuted) text += words_of(plan.axes());
  if (!combine.is_copy()) {
    auto scalar = [](const ScalarBytes& bytes) {
      std::string hex;
      for (const auto b : bytes) hex += "0123456789abcdef"[int(b) >> 4], hex += "0123456789abcdef"[int(b) & 15];
      return hex;
    };
    text += ", " + std::string(element_name(combine.type())) + " alpha 0x" + scalar(combine.alpha()) + " beta 0x" +
            scalar(combine.beta()) + (combine.conjugate() ? " conjugated" : "");
  }
  return text;
}

void check_owner(const BlockPlan& plan, const XArray& source, const XArray& destination, Index rank, Index ranks,
                 const char* world) {
  if (plan.world_size() > ranks)
    throw Error(ErrorKind::argument, "the plan has blocks on rank " + std::to_string(plan.world_size() - 1) + ", " +
                                         world + " has " + std::to_string(ranks) + " ranks");
  for (const auto& [whose, what] :
       {std::pair{plan.rank(), "plan"}, {source.rank(), "source array"}, {destination.rank(), "destination array"}})
    if (whose && *whose != rank)
      throw Error(ErrorKind::argument, std::string("the ") + what + " is rank " + std::to_string(*whose) +
                                           "'s, this is rank " + std::to_string(rank));
}

void check_layout_options(const MotionPlan& plan, const Combine& combine, Index max_mem) {
  if (max_mem < 0)
    throw Error(ErrorKind::argument, "max_mem is " + std::to_string(max_mem) + " bytes; it must not be negative");
  if (!combine.is_copy() && element_size(combine.type()) != plan.element_bytes())
    throw Error(ErrorKind::type, "alpha and beta are for " + std::string(element_name(combine.type())) +
                                     ", the plan's elements have " + std::to_string(plan.element_bytes()) + " bytes");
}

}  // namespace longshore
