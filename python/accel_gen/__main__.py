from accel_gen.command import main

main()
