/// Longshore's errors as Python exceptions: the classes live in longshore.errors, one a kind.
#pragma once

#include <nanobind/nanobind.h>

#include <system_error>

#include "core/start_thread.hpp"
#include "longshore/core/error.hpp"

namespace longshore::python {

inline const char* class_of(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::argument: return "ArgumentError";
    case ErrorKind::layout: return "LayoutError";
    case ErrorKind::shape: return "ShapeError";
    case ErrorKind::type: return "DTypeError";
    case ErrorKind::buffer: return "LocalArrayError";
    case ErrorKind::memory_limit: return "MemoryLimitError";
    case ErrorKind::overflow: return "SizeOverflowError";
    case ErrorKind::disagreement: return "DisagreementError";
    case ErrorKind::transport: return "TransportError";
    case ErrorKind::deadlock: return "DeadlockError";
  }
  return "LongshoreError";
}

inline void set_error(const Error& error) {
  const auto module = nanobind::module_::import_("longshore.errors");
  PyErr_SetString(nanobind::object(module.attr(class_of(error.kind()))).ptr(), error.what());
}

/// Every extension module calls this once, in its own body.
inline void register_errors() {
  nanobind::register_exception_translator(
      [](const std::exception_ptr& pointer, void*) {
        try {
          std::rethrow_exception(pointer);
        } catch (const Error& error) {
          set_error(error);
        } catch (const std::system_error& error) {  // of threads that are many alike
          if (error.code() != std::errc::resource_unavailable_try_again) throw;
          set_error(no_thread(error, "this", "ask for fewer threads"));
        }
      },
      nullptr);
}

}  // namespace longshore::python
