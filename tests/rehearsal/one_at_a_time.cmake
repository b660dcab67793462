# For ctest, which includes this after the tests it has found: rehearsals clear away network namespaces that killed ones have left,
# and tests look for them, so that two at a time would see each other's.
foreach(test IN LISTS cli_test_TESTS rehearsal_test_TESTS)
  if(test MATCHES "^cli/Rehearse|^rehearsal/(LocalHosts|RehearseSteps)")
    set_tests_properties("${test}" PROPERTIES RESOURCE_LOCK network_namespaces)
  endif()
endforeach()
