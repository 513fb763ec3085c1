# Writes what a build is known by: a digest of all headers, and of WORDS. Extension modules of builds that have the same
# one can give each other objects.
file(GLOB_RECURSE headers LIST_DIRECTORIES false RELATIVE "${SOURCE}" "${SOURCE}/include/*.hpp"
     "${SOURCE}/src/*.hpp" "${SOURCE}/bindings/*.hpp")
list(SORT headers)
set(all "${WORDS}")
foreach(header IN LISTS headers)
  file(SHA256 "${SOURCE}/${header}" digest)
  string(APPEND all "\n${header} ${digest}")
endforeach()
string(SHA256 digest "${all}")
string(SUBSTRING ${digest} 0 16 digest)
file(CONFIGURE OUTPUT "${OUTPUT}" CONTENT "#define LONGSHORE_BUILD_IDENTITY \"${digest}\"\n")
