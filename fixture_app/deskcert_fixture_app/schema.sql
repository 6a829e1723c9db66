create table customers (id integer primary key, name text not null, city text not null, country text not null,
  email text not null, segment text not null, since text not null);
create table orders (id integer primary key, customer_id integer not null references customers, placed_on text not null,
  channel text not null, status text not null check (status in ('waiting', 'approved', 'shipped', 'cancelled')),
  total_cents integer not null);
create table order_lines (order_id integer not null references orders, product text not null, sku text not null,
  quantity integer not null, unit_cents integer not null);
create table payouts (id integer primary key, payee text not null, iban text not null, amount_cents integer not null,
  due_on text not null, reference text not null default '',
  status text not null check (status in ('waiting', 'approved', 'sent')));
create table messages (id integer primary key, sender text not null, email text not null, subject text not null,
  body text not null, received text not null, handled integer not null default 0);
create table replies (id integer primary key, message_id integer not null references messages, body text not null);
create table notes (id integer primary key, order_id integer references orders, author text not null,
  body text not null, written text not null);
create table settings (key text primary key, value text not null);
create table exports (id integer primary key, what text not null);
create table files (id integer primary key, name text not null, alt text not null, size_kb integer not null,
  state text not null check (state in ('kept', 'archived')));
create table stock (id integer primary key, name text not null, sku text not null, level integer not null,
  target integer not null, state text not null check (state in ('low', 'enough', 'reordered')));
create table held_prices (id integer primary key, product text not null, cents integer not null, state text not null);
create table vans (id integer primary key, driver text not null, route text not null, stops integer not null,
  state text not null check (state in ('loading', 'ready', 'released')));
create table collections (id integer primary key, order_id integer not null references orders);
create table account (id integer primary key check (id = 1), state text not null);
create table activity (id integer primary key, at text not null, text text not null);
