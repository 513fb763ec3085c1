#include "longshore/encodings/message_models.hpp"
#include "relation_buffers.hpp"

namespace longshore::python {

namespace {

std::optional<EncodingKind> kind_of(const std::string& name) {
  return name == "auto" ? std::nullopt : std::optional(encoding_kind(name));
}

/// A relation, or an encoding of one.
AddressRelation relation_of(const nb::object& given) {
  if (nb::isinstance<Encoding>(given)) return nb::cast<const Encoding&>(given).decode();
  if (nb::isinstance<AddressRelation>(given)) return nb::cast<const AddressRelation&>(given);
  throw nb::type_error("expected an AddressRelation or an Encoding");
}

/// The bytes of a message as it has arrived.
std::span<const std::byte> bytes_of(const Memory& message) {
  if (!message.contiguous) throw Error(ErrorKind::buffer, "a message is contiguous bytes");
  return {message.data, std::size_t(message.high)};
}

}  // namespace

void bind_messages(nb::module_& module) {
  const auto kind_arg = nb::arg("kind") = "auto";
  module.def(
      "sender_half",
      [](const AddressRelation& relation, const std::string& kind) {
        nb::gil_scoped_release release;
        return sender_half(relation, kind_of(kind));
      },
      nb::arg("relation"), kind_arg,
      "Send/receive (section 2): what the source keeps, encoded. Its assemble() makes messages of data only.");
  module.def(
      "receiver_half",
      [](const AddressRelation& relation, const std::string& kind) {
        nb::gil_scoped_release release;
        return receiver_half(relation, kind_of(kind));
      },
      nb::arg("relation"), kind_arg,
      "Send/receive (section 2): what the destination keeps, encoded. Its disassemble() takes such messages.");

  nb::class_<PutSender>(
      module, "PutSender",
      "Put (section 2), at the source, which has the whole relation: the destination addresses, encoded once, go "
      "along with the data of every message. The destination takes it with `deliver_put`. A combining operation "
      "travels too.")
      .def(
          "__init__",
          [](PutSender* self, const nb::object& relation, const std::string& kind) {
            new (self) PutSender(relation_of(relation), kind_of(kind));
          },
          nb::arg("relation"), kind_arg)
      .def(
          "__call__",
          [](const PutSender& self, const nb::object& source, nb::object message) {
            if (message.is_none()) message = arrays_module().attr("empty_bytes")(self.message_bytes());
            const Memory from(source), to(message);
            const Interval bytes{0, self.message_bytes()}, read = self.assembler().program().source_extent();
            from.check(read, "source", false);
            to.check(bytes, "message", true);
            to.check_apart(bytes, from, read);
            nb::gil_scoped_release release;
            self.run(to.data, from.data);
            return message;
          },
          nb::arg("source"), nb::arg("message") = nb::none(),
          "A message of `message_bytes` into `message` (new where None), which is returned: what MPI or a socket "
          "sends.",
          nb::sig("def __call__(self, source: object, message: object | None = None) -> numpy.typing.NDArray"))
      .def_prop_ro("message_bytes", &PutSender::message_bytes, "Bytes of a message.")
      .def_prop_ro("address_bytes", &PutSender::address_bytes, "Bytes of a message that are not data.");
  module.def(
      "deliver_put",
      [](const nb::object& message, const nb::object& destination) {
        const Memory from(message), to(destination);
        const auto bytes = bytes_of(from);
        const PutMessage arrived(bytes);
        to.check(arrived.destination_extent(), "destination", true);
        to.check_apart(arrived.destination_extent(), from, {0, Index(bytes.size())});
        nb::gil_scoped_release release;
        arrived.deliver(to.data, {to.low, to.high});
        return destination;
      },
      nb::arg("message"), nb::arg("destination"),
      "Put, at the destination: writes, or combines, what a put message carries to where it says, and returns the "
      "destination. The message may come from anybody: raises ArgumentError where it does not hold together, "
      "LocalArrayError where it would leave the array. Nothing is written then.",
      nb::sig("def deliver_put(message: object, destination: object) -> typing.Any"));

  module.def(
      "get_request",
      [](const AddressRelation& relation, const std::string& kind) {
        const auto request = get_request(relation, kind_of(kind));
        return nb::bytes(reinterpret_cast<const char*>(request.data()), request.size());
      },
      nb::arg("relation"), kind_arg,
      "Get (section 2), at the destination, which has the whole relation: the source addresses, for the source's "
      "`answer_get`. What comes back goes to relation.disassembler().");
  module.def(
      "answer_get",
      [](const nb::object& request, const nb::object& source, const nb::object& max_bytes) {
        const Memory asked(request), from(source);
        const auto most =
            nb::cast<Index>(nb::module_::import_("longshore._words").attr("size_in_bytes")(max_bytes, "max_bytes"));
        const GetRequest arrived(bytes_of(asked), most > 0 ? most : from.high - from.low);
        from.check(arrived.source_extent(), "source", false);
        const auto& addresses = arrived.addresses();
        auto payload = arrays_module().attr("empty_message")(source, addresses.elements(), addresses.element_bytes());
        const Memory to(payload);
        nb::gil_scoped_release release;
        arrived.answer(to.data, from.data, {from.low, from.high});
        return payload;
      },
      nb::arg("request"), nb::arg("source"), nb::arg("max_bytes") = nb::none(),
      "Get, at the source: the data that a request asks for, as a dense message. The request may come from anybody: "
      "raises ArgumentError where it does not hold together or asks for more than `max_bytes` (or \"64MiB\"; default: "
      "as many as the "
      "source has; a request for the same elements many times over needs more), LocalArrayError where it would leave "
      "the array.",
      nb::sig("def answer_get(request: object, source: object, max_bytes: int | str | None = None) -> "
              "numpy.typing.NDArray"));
}

}  // namespace longshore::python
