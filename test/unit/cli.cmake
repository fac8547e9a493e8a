weir_test(NAME cli_values_test LABEL unit
  SOURCES cli_client_test.cc cli_cluster_files_test.cc cli_overrides_test.cc cli_ports_test.cc
    cli_table_test.cc
  DEPS cli config policy LIBS Boost::json)

# Runs the real program.
weir_test(NAME cli_program_test LABEL unit SOURCES cli_program_test.cc DEPS cli test_support LIBS Boost::json)
add_dependencies(cli_program_test weir)
target_compile_definitions(cli_program_test PRIVATE WEIR_PROGRAM="$<TARGET_FILE:weir>")
