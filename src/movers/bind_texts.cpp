#include "movers/bind_texts.hpp"

#include <charconv>
#include <complex>

#include "relations/element_types.hpp"

namespace longshore {

namespace {

std::string element_of(Index bytes, const std::string& name) {
  return std::to_string(bytes) + (bytes == 1 ? " byte" : " bytes") + (name.empty() ? "" : " (" + name + ")");
}

std::string type_of(const Reduction& reduction) {
  return reduction.op() == ReduceOp::user ? "elements of " + std::to_string(reduction.element_bytes()) + " bytes"
                                          : std::string(element_name(reduction.type()));
}

/// All of its digits: numbers that differ have texts that differ.
template <class T>
std::string text_of(const T& number) {
  char text[64];
  return {text, std::to_chars(text, text + sizeof text, number).ptr};
}
template <class T>
std::string text_of(const std::complex<T>& number) {
  return text_of(number.real()) + " + " + text_of(number.imag()) + "i";
}

std::string scalar_of(ElementType type, const ScalarBytes& bytes) {
  return with_type(type, [&](auto number) { return text_of(load_element<decltype(number)>(bytes.data())); }) + " (" +
         std::string(element_name(type)) + ")";
}

}  // namespace

Facts block_facts(const BlockPlan& plan, const XArray& source, const XArray& destination, const BlockOptions& options,
                  const std::string& element, bool lists) {
  Facts facts = plan.facts(lists);
  const bool same = source.same_storage(destination);
  facts.push_back({"arrays", same ? "one, moved within itself" : "a source and a destination"});
  auto array = [&](const XArray& of, const char* side) {
    facts.push_back({std::string(side) + " array", "elements of " + element_of(of.element_bytes(), element)});
    facts.push_back({std::string(side) + " array", "ghost cells " + of.format().ghost.to_string()});
    facts.push_back({std::string(side) + " array", std::string("order ") + char(of.format().order)});
  };
  array(source, "source");
  if (!same) array(destination, "destination");
  facts.push_back({"combine", options.reduction.is_replace() ? "none"
                                                             : std::string(reduce_name(options.reduction.op())) +
                                                                   " of " + type_of(options.reduction)});
  facts.push_back({"order", std::string(1, char(options.visit))});
  facts.push_back({"checked", options.checked ? "true" : "false"});
  return facts;
}

Facts layout_facts(const MotionPlan& plan, const Combine& combine, const std::string& element) {
  Facts facts;
  std::string shape, axes;
  for (const Index n : plan.source().shape()) shape += (shape.empty() ? "" : "x") + std::to_string(n);
  for (const std::size_t axis : plan.axes()) axes += (axes.empty() ? "" : ", ") + std::to_string(axis);
  facts.push_back({"shape", shape});
  facts.push_back({"elements", element_of(plan.element_bytes(), element)});
  facts.push_back({"source layout", plan.source().to_string()});
  facts.push_back({"destination layout", plan.destination().to_string()});
  facts.push_back({"axes", axes});
  const bool copies = combine.is_copy();
  facts.push_back({"alpha", copies ? "1" : scalar_of(combine.type(), combine.alpha())});
  facts.push_back({"beta", copies ? "0" : scalar_of(combine.type(), combine.beta())});
  facts.push_back({"conjugate", combine.conjugate() ? "true" : "false"});
  return facts;
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
