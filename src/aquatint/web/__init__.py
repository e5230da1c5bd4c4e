"""Pages in the browser, on this machine only: for analysts (`serve`) and for curators (`studio`)."""
