from accel_gen import main

main()
