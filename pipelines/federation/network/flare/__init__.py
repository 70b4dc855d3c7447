"""The federation on NVFlare: each client a process of its own, with a certificate of its own, on its own machine.

client, server     what NVFlare makes in its job processes; carrier: the server's messages, and who is lost
launcher, worker   how a client starts a job process; narrowed, deployer: what it answers, and takes for a job
kits, processes    how certificates are made, processes started and ended
jobs, carried      how a run is submitted, and its history brought back
names              what both ends call by name
"""
