"""Runs a federation on NVFlare: each client is a process of its own.

Each client has its own certificate, and runs on its own machine.

client, server: the objects that NVFlare makes in the job processes.
engine: sends the server's messages and notices lost clients.
launcher, worker: start a job process at a client.
server_launcher, server_worker: start a job process at the server.
hardening, deployer: restrict what a client answers, and which jobs it takes.
origins: checks at the server that each message bears its sender's own name.
common_hardening: restricts what clients and server both offer to others.
kits: makes the certificates and policies of all participants.
processes: starts and ends the participants of one machine.
jobs, submit: submit a run and fetch its history.
names: holds the names that both ends of a job use.
"""
