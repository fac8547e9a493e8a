foreach(part scalars yaml policy topology node files mutation)
  weir_test(NAME config_${part}_test LABEL unit SOURCES config_${part}_test.cc DEPS config policy)
  target_compile_definitions(config_${part}_test
    PRIVATE WEIR_SAMPLES="${PROJECT_SOURCE_DIR}/deploy/samples")
endforeach()
